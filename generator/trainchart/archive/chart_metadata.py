"""Chart.yaml as Helm reads it, which is what indexes and registries repeat. Pure.

Helm takes a number or a boolean for a text in Chart.yaml, but not in an index or in the config of an OCI artifact.
Source: Metadata, Maintainer and Dependency of pkg/chart/v2 in Helm 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainchart.errors import ToolError
from trainchart.yaml_loader import helm_text

_MAINTAINER = {"email": str, "name": str, "url": str}
_DEPENDENCY = {
    "alias": str,
    "condition": str,
    "enabled": bool,
    "import-values": [object],
    "name": str,
    "repository": str,
    "tags": [str],
    "version": str,
}
_METADATA = {
    "annotations": (str,),
    "apiVersion": str,
    "appVersion": str,
    "condition": str,
    "dependencies": [_DEPENDENCY],
    "deprecated": bool,
    "description": str,
    "home": str,
    "icon": str,
    "keywords": [str],
    "kubeVersion": str,
    "maintainers": [_MAINTAINER],
    "name": str,
    "sources": [str],
    "tags": str,
    "type": str,
    "version": str,
}
"""The type of each key: a list of a type, a mapping with these keys, or a tuple for one with any keys."""


def read_metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a Chart.yaml with Helm's keys and types. Raises ToolError where Helm cannot read it."""
    found: dict[str, Any] = _convert(data, _METADATA, "Chart.yaml")
    return found


def _convert(value: Any, shape: Any, where: str) -> Any:
    if shape is object:
        return value
    if shape is str and isinstance(value, str | bool | int | float):
        return helm_text(value)
    if shape is bool and isinstance(value, bool):
        return value
    if isinstance(shape, list) and isinstance(value, list):
        return ["" if each is None and shape == [str] else _convert(each, shape[0], where) for each in value]
    if isinstance(shape, tuple) and isinstance(value, Mapping):
        return {key: "" if each is None else _convert(each, shape[0], f"{where}: {key}") for key, each in value.items()}
    if isinstance(shape, dict) and isinstance(value, Mapping):
        known = [key for key in value if key in shape and value[key] is not None]
        return {key: _convert(value[key], shape[key], f"{where}: {key}") for key in known}
    raise ToolError(f"{where} is {value!r:.80}, which Helm does not read", hint="see helm.sh/docs/topics/charts")
