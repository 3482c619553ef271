"""Finds objects with fields of a type that no Kubernetes API returns: of a broken proxy or a damaged copy. Pure.

Only what a diagnosis and trainchart_runtime read unchecked is listed; everything else may have any type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEY_LIMIT = 60
"""Characters of a key in a path."""
_TEXTS = {"*": str}
"""Shapes are types, mappings of fields to shapes (`*`: of all fields), and lists with the shape of their items."""
_END = {"exitCode": int, "reason": str, "message": str, "startedAt": str, "finishedAt": str}
_STATE = {"waiting": {"reason": str, "message": str}, "running": {"startedAt": str}, "terminated": _END}
_STATUS = {"name": str, "restartCount": int, "image": str, "imageID": str, "state": _STATE, "lastState": _STATE}
_CONDITIONS = [{"type": str, "status": str, "reason": str, "message": str, "lastTransitionTime": str}]
_METADATA = {
    "name": str,
    "namespace": str,
    "uid": str,
    "generation": int,
    "creationTimestamp": str,
    "deletionTimestamp": str,
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "ownerReferences": [{"kind": str, "name": str, "uid": str}],
    "managedFields": [{"manager": str, "fieldsV1": {"*": dict}}],
}
_AMOUNTS = {"*": str | int | float}
_CONTAINER = {
    "name": str,
    "image": str,
    "command": [str],
    "args": [str],
    "restartPolicy": str,
    "env": [{"name": str, "value": str, "valueFrom": dict}],
    "resources": {"limits": _AMOUNTS, "requests": _AMOUNTS},
    "volumeMounts": [{"name": str, "mountPath": str, "subPath": str}],
}
_POD_SPEC = {
    "nodeName": str,
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "schedulingGates": [{"name": str}],
    "tolerations": [{"key": str}],
    "volumes": [{"name": str, "persistentVolumeClaim": {"claimName": str}}],
}
_SPEC = {**_POD_SPEC, "replicas": int, "parallelism": int, "template": {"spec": _POD_SPEC}}
_OBJECT = {
    "metadata": _METADATA,
    "spec": _SPEC,
    "status": {
        "phase": str,
        "reason": str,
        "message": str,
        "podIP": str,
        "conditions": _CONDITIONS,
        "containerStatuses": [_STATUS],
        "initContainerStatuses": [_STATUS],
    },
    "data": _TEXTS,
    "involvedObject": _TEXTS,
    "series": {"lastObservedTime": str},
    "reason": str,
    "message": str,
    "lastTimestamp": str,
    "eventTime": str,
}
"""Of StatefulSets, pods, ConfigMaps, Jobs and Events together: they share no field of different types."""


def find_wrong_field(each: Mapping[str, Any]) -> str:
    """Return the path of the first field of a wrong type, such as spec.containers[0]; "" where there is none."""
    metadata = each.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        return "metadata.name"
    return (_find_misfit(each, _OBJECT) or "").lstrip(".")


def _find_misfit(value: Any, shape: Any) -> str | None:
    """Return the path from a value to the first that does not fit; None where all of it does. None fits every shape."""
    if value is None:
        return None
    if isinstance(shape, dict) and isinstance(value, Mapping):
        fields = value if "*" in shape else [key for key in shape if key in value]
        for key in fields:
            path = _find_misfit(value[key], shape.get("*") or shape[key])
            if path is not None:
                return f".{key:.{_KEY_LIMIT}}{path}"
        return None
    if isinstance(shape, list) and isinstance(value, list):
        for number, item in enumerate(value):
            path = "" if item is None else _find_misfit(item, shape[0])
            if path is not None:
                return f"[{number}]{path}"
        return None
    return None if not isinstance(shape, dict | list) and isinstance(value, shape) else ""
