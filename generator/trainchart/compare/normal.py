"""Objects as the API server keeps them: two spellings of the same become one. Pure.

Quantities in one unit, nulls and empty lists left out, defaults left out that a chart may spell out, and without the
labels that say the chart's version, which differ between any two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainchart.check.objects import mapping_at
from trainchart.helm.rendering import Manifest
from trainchart.quantities import parse_quantity
from trainchart_runtime.contract import CHART_LABEL, VERSION_LABEL

_VERSION_LABELS = (CHART_LABEL, VERSION_LABEL)

_QUANTITIES = ("requests", "limits")
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "Service": {
        "protocol": "TCP",
        "publishNotReadyAddresses": False,
        "sessionAffinity": "None",
        "type": "ClusterIP",
    },
    "StatefulSet": {
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "minReadySeconds": 0,
    },
    "Job": {"backoffLimit": 6, "completions": 1, "parallelism": 1},
    "Deployment": {"revisionHistoryLimit": 10, "minReadySeconds": 0, "progressDeadlineSeconds": 600},
}
"""Defaults by kind, of the object's own specification."""
_POD_DEFAULTS: Mapping[str, Any] = {
    "dnsPolicy": "ClusterFirst",
    "hostIPC": False,
    "hostNetwork": False,
    "hostPID": False,
    "protocol": "TCP",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "defaultMode": 420,
    "failureThreshold": 3,
    "periodSeconds": 10,
    "successThreshold": 1,
    "timeoutSeconds": 1,
}
"""Defaults below a pod template's specification; the names mean one thing each there."""
_FREE = ("labels", "annotations", "data", "stringData", "binaryData", "nodeSelector", "matchLabels")
"""Maps whose keys are their author's."""


def normal_document(manifest: Manifest) -> dict[str, Any]:
    """Return the object as it would be kept, without the chart's version on the object itself."""
    document = dict(manifest.document)
    metadata = dict(mapping_at(document, "metadata"))
    labels = {key: value for key, value in mapping_at(metadata, "labels").items() if key not in _VERSION_LABELS}
    document["metadata"] = metadata | {"labels": labels}
    normal = _normal(document, _DEFAULTS.get(manifest.kind, {}), in_pod=False)
    assert isinstance(normal, dict)
    return normal


def _normal(value: Any, defaults: Mapping[str, Any], *, in_pod: bool) -> Any:
    if isinstance(value, list):
        return [_normal(item, defaults, in_pod=in_pod) for item in value]
    if not isinstance(value, Mapping):
        return value
    found: dict[str, Any] = {}
    for key, item in value.items():
        if item is None or item == []:
            continue
        if key in _FREE:
            found[key] = item
        elif key in _QUANTITIES and isinstance(item, Mapping):
            found[key] = {name: _normal_quantity(amount) for name, amount in item.items()}
        elif key == "sizeLimit":
            found[key] = _normal_quantity(item)
        elif key in defaults and type(item) is type(defaults[key]) and item == defaults[key]:
            continue
        else:
            below = _POD_DEFAULTS if key == "template" or in_pod else defaults
            found[key] = _normal(item, below, in_pod=in_pod or key == "template")
    return found


def _normal_quantity(amount: Any) -> str:
    number = parse_quantity(amount) if isinstance(amount, (str, int, float)) else None
    return str(amount) if number is None else f"{number.normalize():f}"
