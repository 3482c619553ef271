"""The values that a user gives on the command line: their files read, and merged as Helm merges them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import ValueOverrides
from trainchart.host.files import read_text
from trainchart.kubernetes_yaml import parse_mapping

_VALUES_CHART = {
    "Chart.yaml": "apiVersion: v2\nname: values\nversion: 0.0.0\n",
    "templates/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\n"
    "data: {values: {{ .Values | toJson | quote }}}\n",
}


def read_overrides(
    files: tuple[Path, ...], sets: tuple[str, ...], set_strings: tuple[str, ...], set_jsons: tuple[str, ...]
) -> ValueOverrides:
    """Return what --values, --set, --set-string and --set-json say. Raises ToolError for a file that cannot be read."""
    return ValueOverrides(read_values_files(files), sets=sets, set_strings=set_strings, set_jsons=set_jsons)


def read_values_files(files: Iterable[Path]) -> tuple[tuple[str, str], ...]:
    """Return (path, text) of values files, each read once: it may be a pipe. Raises ToolError."""
    return tuple((str(path), read_text(path)) for path in files)


def merge_values(engine: HelmEngine, overrides: ValueOverrides) -> dict[str, Any]:
    """Return the values that `overrides` stand for, as Helm itself merges them. Raises RenderError."""
    if overrides == ValueOverrides():
        return {}
    with tempfile.TemporaryDirectory(prefix="trainchart-values-") as folder:
        for path, text in _VALUES_CHART.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        manifest = engine.render(Path(folder), release="values", overrides=overrides).manifests[0]
    return parse_mapping(manifest.document["data"]["values"])
