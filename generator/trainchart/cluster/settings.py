"""Reads what a run was asked for, from its StatefulSets and the ConfigMap of hyperparameters that they mount. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.cluster.snapshot import Object, Snapshot, items_of, label, listed, name_of, section
from trainchart.json_documents import parse_json
from trainchart.reports.run_settings import RunSettings, read_role
from trainchart.secret_masks import mask_values
from trainchart_runtime.cluster import ROLES
from trainchart_runtime.contract import (
    COMPONENT_LABEL,
    HYPERPARAMETERS_FILE_NAME,
    REPLICAS_ANNOTATION,
    STRATEGY_ANNOTATION,
)


def find_settings(seen: Snapshot) -> RunSettings:
    """Return the settings of the only training in `seen`, as far as its objects say."""
    sets = sorted(filter(_is_role, listed(seen.sets)), key=lambda each: ROLES.index(label(each, COMPONENT_LABEL)))
    strategies = (section(each, "metadata", "annotations").get(STRATEGY_ANNOTATION) for each in sets)
    return RunSettings(
        strategy=next((str(each) for each in strategies if each), ""),
        roles={
            label(each, COMPONENT_LABEL): read_role(_replicas(each), section(each, "spec", "template", "spec"))
            for each in sets
        },
        hyperparameters=_find_hyperparameters(sets, listed(seen.config_maps)),
    )


def _is_role(each: Object) -> bool:
    return label(each, COMPONENT_LABEL) in ROLES


def _replicas(each: Object) -> int:
    text = str(section(each, "metadata", "annotations").get(REPLICAS_ANNOTATION) or "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _find_hyperparameters(sets: Sequence[Object], config_maps: Sequence[Object]) -> Mapping[str, Any] | None:
    """Return the hyperparameters that the next pods get: an upgrade makes another ConfigMap."""
    used = {name for each in sets for name in _list_mounted(section(each, "spec", "template", "spec"))}
    for each in config_maps:
        text = section(each, "data").get(HYPERPARAMETERS_FILE_NAME)
        if name_of(each) in used and text is not None:
            try:
                values = parse_json(str(text))
            except ValueError:
                return None
            return mask_values(values) if isinstance(values, dict) else None
    return None


def _list_mounted(pod_spec: Object) -> Iterator[str]:
    """Yield the names of the ConfigMaps that a pod mounts."""
    for volume in items_of(pod_spec, "volumes"):
        for part in (volume, *items_of(section(volume, "projected"), "sources")):
            yield str(section(part, "configMap").get("name") or "")
