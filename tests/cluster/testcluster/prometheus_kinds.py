"""The kinds of the Prometheus operator on demand, from its Go module. Without the operator, objects are only kept."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from .access import Access
from .cache_folder import find_cache
from .kueue import without_descriptions

VERSION = "0.85.0"
MODULE = "github.com/prometheus-operator/prometheus-operator"

_KINDS = ("podmonitors", "prometheusrules")


@contextmanager
def add_prometheus_kinds(access: Access) -> Iterator[None]:
    """Let a cluster know the kinds, and remove them with all their objects."""
    names = [f"crd/{kind}.monitoring.coreos.com" for kind in _KINDS]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": read_definitions()})
    try:
        access.kubectl("create", "-f", "-", text=text)
        access.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
        yield
    finally:
        access.kubectl("delete", "--ignore-not-found", *names, "--timeout=60s")


def read_definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions, from the cache or from the module."""
    file = find_cache(os.environ, "bin") / f"prometheus-kinds-{VERSION}.json"
    if not file.exists():
        download = ["go", "mod", "download", "-json", f"{MODULE}@v{VERSION}"]
        done = subprocess.run(download, capture_output=True, text=True, check=True)
        folder = Path(json.loads(done.stdout)["Dir"], "example", "prometheus-operator-crd")
        paths = [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in _KINDS]
        definitions = [without_descriptions(yaml.load(path.read_text(), yaml.CSafeLoader)) for path in paths]
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(definitions))
        part.replace(file)
    found: list[dict[str, Any]] = json.loads(file.read_text())
    return found
