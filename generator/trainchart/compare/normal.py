"""Objects as the API server keeps them: two spellings of the same become one. Pure.

Quantities in one unit, nulls and empty lists left out, defaults left out that a chart may spell out, and without the
labels that say the chart's version, which differ between any two. What a custom resource means by a field is not
known, so that nothing but those labels is left out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.check.objects import mapping_at
from trainchart.check.pod_templates import is_of_kubernetes
from trainchart.helm.rendering import Manifest
from trainchart.quantities import parse_quantity
from trainchart_runtime.contract import CHART_LABEL, VERSION_LABEL

_VERSION_LABELS = (CHART_LABEL, VERSION_LABEL)
_QUANTITIES = ("requests", "limits")
_FREE = ("labels", "annotations", "data", "stringData", "binaryData", "nodeSelector", "matchLabels")
"""Maps whose keys are their author's."""


@dataclass(frozen=True)
class _Defaults:
    """What the API server fills in at one place of an object and at the places below it; of a list, in each item."""

    own: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, _Defaults] = field(default_factory=dict)


_NONE = _Defaults()
_PROTOCOL = _Defaults({"protocol": "TCP"})
_PROBE = _Defaults({"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1})
_CONTAINER = _Defaults(
    {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    {"ports": _PROTOCOL, "livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE},
)
_FILES = _Defaults({"defaultMode": 0o644})
_POD = _Defaults(
    {
        "dnsPolicy": "ClusterFirst",
        "hostIPC": False,
        "hostNetwork": False,
        "hostPID": False,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
    },
    {
        "containers": _CONTAINER,
        "initContainers": _CONTAINER,
        "volumes": _Defaults({}, dict.fromkeys(("configMap", "downwardAPI", "projected", "secret"), _FILES)),
    },
)
_TEMPLATE = {"template": _Defaults({}, {"spec": _POD})}
_SPECIFICATIONS: Mapping[str, _Defaults] = {
    "Pod": _POD,
    "Service": _Defaults(
        {"publishNotReadyAddresses": False, "sessionAffinity": "None", "type": "ClusterIP"}, {"ports": _PROTOCOL}
    ),
    "StatefulSet": _Defaults(
        {"podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10, "minReadySeconds": 0}, _TEMPLATE
    ),
    "Deployment": _Defaults(
        {"revisionHistoryLimit": 10, "minReadySeconds": 0, "progressDeadlineSeconds": 600}, _TEMPLATE
    ),
    "Job": _Defaults({}, _TEMPLATE),
}
"""By kind, what is filled in below `spec`. Source: pkg/apis/*/v1/defaults.go of Kubernetes."""


def normal_document(manifest: Manifest) -> dict[str, Any]:
    """Return the object as it would be kept, without the chart's version on the object itself."""
    document = dict(manifest.document)
    metadata = dict(mapping_at(document, "metadata"))
    labels = {key: value for key, value in mapping_at(metadata, "labels").items() if key not in _VERSION_LABELS}
    document["metadata"] = metadata | {"labels": labels}
    if not is_of_kubernetes(manifest):
        return document
    normal = _normal(document, _Defaults({}, {"spec": _SPECIFICATIONS.get(manifest.kind, _NONE)}))
    assert isinstance(normal, dict)
    return _without_job_defaults(normal) if manifest.kind == "Job" else normal


def _normal(value: Any, defaults: _Defaults) -> Any:
    if isinstance(value, list):
        return [_normal(item, defaults) for item in value]
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
        elif not (key in defaults.own and type(item) is type(defaults.own[key]) and item == defaults.own[key]):
            found[key] = _normal(item, defaults.below.get(key, _NONE))
    return found


def _without_job_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """Leave out counts that follow from each other: with `parallelism` alone, a Job is done when one of its pods is."""
    specification = dict(mapping_at(job, "spec"))
    if "backoffLimitPerIndex" not in specification and specification.get("backoffLimit") == 6:
        del specification["backoffLimit"]
    if "completions" in specification and specification.get("parallelism") == 1:
        del specification["parallelism"]
    if "parallelism" not in specification and specification.get("completions") == 1:
        del specification["completions"]
    return {**job, "spec": specification}


def _normal_quantity(amount: Any) -> str:
    number = parse_quantity(amount) if isinstance(amount, (str, int, float)) else None
    return str(amount) if number is None else f"{number.normalize():f}"
