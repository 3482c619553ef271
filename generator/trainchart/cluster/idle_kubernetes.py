"""Says that Kubernetes itself does not act: its StatefulSet controller leaves pods missing for long. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainchart.cluster.objects import RoleSet
from trainchart.cluster.snapshot import (
    MOST_PODS,
    Object,
    Snapshot,
    Unreadable,
    items_of,
    listed,
    name_of,
    owner_uid,
    section,
)
from trainchart.reports.report import Report
from trainchart.reports.text import describe_seconds, describe_time
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import QUEUED, STOPPING, SUSPENDED

_IDLE_SECONDS = 60.0
"""A StatefulSet controller that works acts within seconds, also after a change of its leader."""
_DEFAULT_GRACE = 30.0
"""Seconds that Kubernetes gives a pod to end if it does not say."""
_NAMES_SHOWN = 4


def find_idle_kubernetes(report: Report, seen: Snapshot, sets: Sequence[RoleSet]) -> list[str]:
    """Return a remark about the pods that Kubernetes should have created long ago, if it has not noticed that."""
    is_unseen = any(isinstance(each, Unreadable) for each in (seen.pods, seen.events))
    if is_unseen or report.outcome is not None or report.is_over or report.phase in (QUEUED, STOPPING, SUSPENDED):
        return []
    objects = {name_of(each): each for each in listed(seen.sets)}
    missing: list[str] = []
    claims: list[str] = []
    for each in sets:
        # A set with a problem is one whose pods the API server refuses, as an event says.
        if each.is_deleting or each.problem is not None or each.name not in objects:
            continue
        names = [name_of(pod) for pod in listed(seen.pods) if owner_uid(pod) == each.uid]
        own = {name for name in names if name.rpartition("-")[0] == each.name}
        absent = [
            name
            for name in (f"{each.name}-{number}" for number in range(min(each.requested, MOST_PODS)))
            if name not in own
        ]
        words = _describe_claim(report, objects[each.name], len(own), absent) if absent else ""
        missing += absent if words else []
        claims += [words] if words else []
    if not claims:
        return []
    shown = [*missing[:_NAMES_SHOWN], *([f"{len(missing) - _NAMES_SHOWN} more"] if missing[_NAMES_SHOWN:] else [])]
    return [
        f"Kubernetes has not created {list_names(shown)}: {'; '.join(claims)}. Kubernetes' "
        "controllers (kube-controller-manager in the control plane) are not working, so nothing creates the pod"
        f"{'' if len(missing) == 1 else 's'}, and other workloads of the cluster are probably affected too. The "
        "cluster's administrators must check kube-controller-manager (kubectl get pods -n kube-system, and its log; of "
        "a managed cluster, ask the provider); the run continues once it works again"
    ]


def _describe_claim(report: Report, each: Object, existing: int, absent: Sequence[str]) -> str:
    """Return what a StatefulSet's status has wrong and since when; "" where it is right, or wrong for a moment only."""
    claimed = _whole(section(each, "status").get("replicas"))
    if claimed > existing:
        pod = section(each, "spec", "template", "spec")
        grace = pod.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
        begin = max((incident.at for incident in report.incidents if incident.pod in absent), default=0.0)
        # An incident is recorded when a pod is deleted, and the pod stays until its program has ended.
        latest = begin + (grace if isinstance(grace, int | float) else _DEFAULT_GRACE)
        exist = f"{existing} exist{'s' if existing == 1 else ''}" if existing else "none exists"
        words = f"reports {claimed} {'pod' if claimed == 1 else 'pods'} in its status, but {exist}"
    elif _whole(section(each, "metadata").get("generation")) > _whole(
        section(each, "status").get("observedGeneration")
    ):
        begin = latest = _find_change(each)
        words = "was created or changed, and its status does not reflect that"
    else:
        return ""
    if not begin or report.now < latest + _IDLE_SECONDS:
        return ""
    age = describe_seconds(report.now - begin)
    return f"the StatefulSet {name_of(each)} {words}, since {describe_time(begin)} (for {age})"


def _find_change(each: Object) -> float:
    """Return when the spec of an object was last changed; 0 where that is not known."""
    metadata = section(each, "metadata")
    entries = [entry for entry in items_of(metadata, "managedFields") if entry.get("subresource") != "status"]
    times = [parse_time(entry.get("time")) for entry in entries if section(entry, "fieldsV1", "f:spec")]
    if not times and metadata.get("generation") != 1:
        return 0.0
    return max((parse_time(metadata.get("creationTimestamp")), *times))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
