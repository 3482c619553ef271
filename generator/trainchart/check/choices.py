"""The fields that take one of a few words, as data; the schemas of Kubernetes say only that they are texts.

A * in a path stands for every entry of a list. Empty and missing fields get Kubernetes' default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Choices = tuple[tuple[str, str], ...]
"""Paths of fields, each with its words."""

_PROTOCOLS = "TCP UDP SCTP"
_ACCESS_MODES = "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod"
_VOLUME_MODES = "Filesystem Block"
_ALWAYS: Choices = (("restartPolicy", "Always"),)
_ONCE: Choices = (("restartPolicy", "OnFailure Never"),)

POD: Mapping[str, Choices] = {
    "CronJob": _ONCE,
    "DaemonSet": _ALWAYS,
    "Deployment": _ALWAYS,
    "Job": _ONCE,
    "Pod": (("restartPolicy", "Always OnFailure Never"),),
    "ReplicaSet": _ALWAYS,
    "ReplicationController": _ALWAYS,
    "StatefulSet": _ALWAYS,
}
"""By the kind that makes the pods."""
EVERY_POD: Choices = (
    ("dnsPolicy", "ClusterFirst ClusterFirstWithHostNet Default None"),
    ("preemptionPolicy", "Never PreemptLowerPriority"),
    ("tolerations.*.effect", "NoExecute NoSchedule PreferNoSchedule"),
    ("tolerations.*.operator", "Equal Exists Gt Lt"),
    ("topologySpreadConstraints.*.nodeAffinityPolicy", "Honor Ignore"),
    ("topologySpreadConstraints.*.nodeTaintsPolicy", "Honor Ignore"),
    ("topologySpreadConstraints.*.whenUnsatisfiable", "DoNotSchedule ScheduleAnyway"),
    ("volumes.*.ephemeral.volumeClaimTemplate.spec.accessModes.*", _ACCESS_MODES),
)
CONTAINER: Choices = (
    ("imagePullPolicy", "Always IfNotPresent Never"),
    ("ports.*.protocol", _PROTOCOLS),
    ("terminationMessagePolicy", "FallbackToLogsOnError File"),
)
OBJECT: Mapping[str, Choices] = {
    "CronJob": (("spec.concurrencyPolicy", "Allow Forbid Replace"),),
    "DaemonSet": (("spec.updateStrategy.type", "OnDelete RollingUpdate"),),
    "Deployment": (("spec.strategy.type", "Recreate RollingUpdate"),),
    "Ingress": (("spec.rules.*.http.paths.*.pathType", "Exact ImplementationSpecific Prefix"),),
    "Job": (("spec.completionMode", "Indexed NonIndexed"),),
    "NetworkPolicy": (
        ("spec.egress.*.ports.*.protocol", _PROTOCOLS),
        ("spec.ingress.*.ports.*.protocol", _PROTOCOLS),
        ("spec.policyTypes.*", "Egress Ingress"),
    ),
    "PersistentVolume": (
        ("spec.accessModes.*", _ACCESS_MODES),
        ("spec.persistentVolumeReclaimPolicy", "Delete Recycle Retain"),
        ("spec.volumeMode", _VOLUME_MODES),
    ),
    "PersistentVolumeClaim": (("spec.accessModes.*", _ACCESS_MODES), ("spec.volumeMode", _VOLUME_MODES)),
    "PodDisruptionBudget": (("spec.unhealthyPodEvictionPolicy", "AlwaysAllow IfHealthyBudget"),),
    "Service": (
        ("spec.externalTrafficPolicy", "Cluster Local"),
        ("spec.internalTrafficPolicy", "Cluster Local"),
        ("spec.ports.*.protocol", _PROTOCOLS),
        ("spec.sessionAffinity", "ClientIP None"),
        ("spec.type", "ClusterIP ExternalName LoadBalancer NodePort"),
    ),
    "StatefulSet": (
        ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Delete Retain"),
        ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Delete Retain"),
        ("spec.podManagementPolicy", "OrderedReady Parallel"),
        ("spec.updateStrategy.type", "OnDelete RollingUpdate"),
        ("spec.volumeClaimTemplates.*.spec.accessModes.*", _ACCESS_MODES),
    ),
    "StorageClass": (
        ("reclaimPolicy", "Delete Retain"),
        ("volumeBindingMode", "Immediate WaitForFirstConsumer"),
    ),
}


def find_wrong_choices(document: Any, choices: Choices) -> Iterator[str]:
    """Yield what is wrong with each field of `document` that says none of its words."""
    for path, words in choices:
        for where, value in _values_at(document, path.split("."), ""):
            if isinstance(value, str) and value and value not in words.split():
                yield f"{where} is {value!r}, not {' or '.join(words.split())}"


def _values_at(node: Any, path: list[str], where: str) -> Iterator[tuple[str, Any]]:
    if not path:
        yield where, node
    elif path[0] == "*" and isinstance(node, list):
        for number, entry in enumerate(node):
            yield from _values_at(entry, path[1:], f"{where}[{number}]")
    elif isinstance(node, Mapping) and path[0] in node:
        yield from _values_at(node[path[0]], path[1:], f"{where}.{path[0]}".lstrip("."))
