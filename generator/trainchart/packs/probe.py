"""Specs that have everything a pack may speak of: they show what a pack gets wrong without a model that uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.layers import ANY_ENTRY
from trainchart.plan.strategies import STRATEGIES
from trainchart.spec.document import Document, parse_document

_NAME = "probe"
_SOURCES = ("existingClaim", "uri", "size")
"""Of which a volume needs one."""


def make_probes(layers: Sequence[Document]) -> Iterator[Document]:
    """Yield a spec of each strategy, with all roles that it may have and all volumes that `layers` name."""
    volumes: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for name, settings in (layer.tree.get("volumes") or {}).items():
            volumes[name] = {**volumes.get(name, {}), **(settings or {})}
    names = dict.fromkeys(("checkpoints", *(name for name in volumes if name != ANY_ENTRY)))
    for strategy in STRATEGIES.values():
        tree: dict[str, Any] = {
            "apiVersion": "trainchart/v1",
            "kind": "Model",
            "name": _NAME,
            "description": _NAME,
            "image": {"repository": "registry.example.com/probe", "tag": "1.0.0"},
            "code": {"path": ".", "command": ["python", "train.py"]},
            "strategy": strategy.name,
            "roles": {role: {} for role in strategy.roles},
            "volumes": {name: _volume(name, volumes.get(name, {}), volumes.get(ANY_ENTRY, {})) for name in names},
        }
        yield parse_document(dump_mapping(tree), file=_NAME, layer=_NAME)


def _volume(name: str, *settings: Mapping[str, Any]) -> dict[str, str]:
    has_source = any(one.get(key) for one in settings for key in _SOURCES)
    place = {} if any("mountPath" in one for one in settings) else {"mountPath": f"/{name}"}
    return place if has_source else {"size": "1Gi", **place}
