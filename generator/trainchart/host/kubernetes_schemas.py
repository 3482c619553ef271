"""The JSON schemas of Kubernetes objects that the package kubernetes-validate brings along: its one owner.

Its own validate() reads a file of one megabyte for every object, so only its data is used.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainchart.errors import ToolError

_FOLDER = re.compile(r"v(?P<version>\d+\.\d+)\.\d+-local-strict")


@functools.cache
def find_versions() -> tuple[str, ...]:
    """Return the Kubernetes versions there are schemas for, like "1.33", oldest first."""
    versions = [match["version"] for folder in _schemas_folder().iterdir() if (match := _FOLDER.fullmatch(folder.name))]
    return tuple(sorted(versions, key=lambda version: tuple(map(int, version.split(".")))))


@functools.cache
def read_definitions(version: str) -> Mapping[str, Any]:
    """Return the strict schemas of Kubernetes `version` by definition name; ToolError where unknown."""
    for folder in _schemas_folder().iterdir():
        match = _FOLDER.fullmatch(folder.name)
        if match and match["version"] == version:
            definitions: Mapping[str, Any] = json.loads((folder / "_definitions.json").read_bytes())["$defs"]
            return definitions
    raise ToolError(
        f"there are no schemas of Kubernetes {version!r}", hint=f"choose one of {', '.join(find_versions())}"
    )


@functools.cache
def _schemas_folder() -> Path:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        raise ToolError(
            "the package kubernetes-validate is not installed", hint="pip install 'kubernetes-validate~=1.37.0'"
        )
    return Path(spec.origin).parent / "kubernetes-json-schema"
