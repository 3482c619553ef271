"""The fields that Kubernetes never changes in an object that is there, and where two renderings differ in them.

As the API server has it: pkg/apis/*/validation of Kubernetes 1.33 and newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.objects import mapping_at
from trainchart.check.pod_templates import kubernetes_kind
from trainchart.helm.rendering import Manifest
from trainchart.json_documents import is_same
from trainchart.quantities import parse_quantity

_FIXED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "ClusterRoleBinding": (("roleRef",),),
    "DaemonSet": (("spec", "selector"),),
    "Deployment": (("spec", "selector"),),
    "Job": (
        ("spec", "selector"),
        ("spec", "template"),
        ("spec", "completionMode"),
        ("spec", "completions"),
        ("spec", "managedBy"),
        ("spec", "successPolicy"),
        ("spec", "podFailurePolicy"),
        ("spec", "backoffLimitPerIndex"),
    ),
    "ReplicaSet": (("spec", "selector"),),
    "RoleBinding": (("roleRef",),),
    "Secret": (("type",),),
    "Service": (("spec", "clusterIP"),),
    "StorageClass": (("parameters",), ("provisioner",), ("reclaimPolicy",), ("volumeBindingMode",)),
}
_CHANGEABLE: Mapping[str, set[str]] = {
    "PersistentVolumeClaim": {"resources", "volumeAttributesClassName"},
    "StatefulSet": {
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    },
}
"""Kinds of whose specification nothing else may change."""


def immutable_fields(manifest: Manifest) -> Mapping[tuple[str, ...], Any]:
    """Return path and content of every field of the object that no upgrade may change."""
    document, kind = manifest.document, kubernetes_kind(manifest)
    fields = {
        path: mapping_at(document, *path[:-1])[path[-1]]
        for path in _FIXED.get(kind, ())
        if path[-1] in mapping_at(document, *path[:-1])
    }
    if kind in _CHANGEABLE:
        spec = mapping_at(document, "spec")
        fields |= {("spec", str(key)): value for key, value in spec.items() if key not in _CHANGEABLE[kind]}
    return fields


def find_rejections(old: Manifest, new: Manifest) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, old, new) for what makes the API server refuse to update an object that is there."""
    before, after = immutable_fields(old), immutable_fields(new)
    for path in sorted({*before, *after}):
        # What an object was given for good stays where an update says nothing of it.
        if path not in after and path == ("spec", "clusterIP"):
            continue
        yield from find_differences(".".join(path), before.get(path), after.get(path))
    if old.document.get("immutable") is True:
        for key in ("immutable", "data", "binaryData", "stringData"):
            yield from find_differences(key, old.document.get(key), new.document.get(key))
    if old.kind == "PersistentVolumeClaim":
        yield from _shrunk_claim(old, new)


def _shrunk_claim(old: Manifest, new: Manifest) -> Iterator[tuple[str, Any, Any]]:
    """Yield a claim's size where it becomes less; a bound claim can grow, if its storage class allows it."""
    path = ("spec", "resources", "requests")
    was, becomes = (mapping_at(manifest.document, *path).get("storage", "") for manifest in (old, new))
    before, after = parse_quantity(was), parse_quantity(becomes)
    if before is not None and after is not None and after < before:
        yield ".".join((*path, "storage")), was, becomes


def _name_entry(old: Any, new: Any) -> str:
    """Return the name that an entry of a list keeps, such as that of a container; empty where it has none."""
    names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in (old, new)]
    return names[0] if isinstance(names[0], str) and names[0] == names[1] else ""


def find_differences(where: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, old, new) of the innermost places at which two contents differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            yield from find_differences(f"{where}.{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from find_differences(f"{where}[{_name_entry(before, after) or number}]", before, after)
    elif not is_same(old, new):
        yield where, old, new
