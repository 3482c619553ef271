"""The Workload by which a whole run waits in a Kueue queue: what it asks for, what Kueue says, what follows.

Pure; rules.py decides the phase by it. One Workload stands for all pods of a run (docs/decisions/0018-queues.md); the
pods carry a scheduling gate, which the run controller takes away when the Workload is admitted.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime import pod_causes
from trainchart_runtime.cluster import Cluster
from trainchart_runtime.log_text import cut_message
from trainchart_runtime.pod_problems import MESSAGE_LIMIT, Problem

ASKS_ANNOTATION = "trainchart/asks"
"""Annotation of a Workload: digest of what it asks for, by which a change of that is noticed."""

CREATE = "create"
DELETE = "delete"
REQUEUE = "requeue"
"""Give the quota back, and wait for it again."""
READY = "ready"
"""Say that every pod runs: Kueue may be told to take quota back from those that are never ready."""
FINISH = "finish"

_POD_KEYS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "overhead",
    "resourceClaims",
    "topologySpreadConstraints",
)
_CONTAINER_KEYS = ("name", "resources", "restartPolicy")


class Placement(NamedTuple):
    """What the admission adds to the pods of one role: where its flavors are, and what else a check asks for."""

    node_selector: Mapping[str, str] = {}
    tolerations: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class WorkloadView(NamedTuple):
    """The run's Workload, reduced to what the rules need."""

    asks: str = ""
    is_active: bool = True
    is_admitted: bool = False
    holds_quota: bool = False
    is_evicted: bool = False
    """Kueue wants the quota back, or has it back and has not given it again."""
    is_ready: bool = False
    is_finished: bool = False
    is_deleting: bool = False
    is_answered: bool = False
    """Kueue has said something about it."""
    is_refused: bool = False
    """The queue takes nothing in, or does not exist."""
    message: str = ""
    """Kueue's last words about it."""


class QueueView(NamedTuple):
    """What is known of the queue."""

    name: str = ""
    workload: Optional[WorkloadView] = None
    placements: Optional[Mapping[str, Placement]] = None
    """By role; None while the Workload is not admitted, or its flavors are not known."""
    problem: Optional[Problem] = None
    """What keeps the run controller from using the queue."""


class QueueStep(NamedTuple):
    """One change of the Workload."""

    action: str
    spec: Mapping[str, Any] = {}
    """Of the Workload, to create it."""
    asks: str = ""
    reason: str = ""
    message: str = ""


def reduce_template(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return of a pod's spec what quota and flavors depend on; another image or variable needs no other quota."""
    reduced: Dict[str, Any] = {key: spec[key] for key in _POD_KEYS if spec.get(key)}
    for key in ("initContainers", "containers"):
        containers = [{name: each[name] for name in _CONTAINER_KEYS if each.get(name)} for each in spec.get(key) or ()]
        if containers:
            reduced[key] = containers
    return reduced


def plan_workload(
    queue: str, priority_class: str, group: Cluster, templates: Mapping[str, Mapping[str, Any]]
) -> Optional[QueueStep]:
    """Return how the Workload of a group is created; None where the template of a set is not known."""
    roles = {task_type: role for task_type, role in group.roles.items() if role.replicas}
    if any(not templates.get(role.name) for role in roles.values()):
        return None
    pod_sets = [
        {"name": task_type, "count": role.replicas, "template": {"spec": templates[role.name]}}
        for task_type, role in roles.items()
    ]
    spec = {"queueName": queue, "podSets": pod_sets}
    text = json.dumps([priority_class, spec], sort_keys=True)
    return QueueStep(CREATE, spec, hashlib.sha256(text.encode()).hexdigest()[:16])


def parse_workload(item: Mapping[str, Any]) -> WorkloadView:
    """Reduce a Workload object (kueue.x-k8s.io) of the Kubernetes API."""
    metadata, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    conditions = find_conditions(status)
    reserved, evicted = conditions.get("QuotaReserved") or {}, conditions.get("Evicted") or {}
    is_evicted = evicted.get("status") == "True"
    # The newest attempt to find room says more than why the quota was taken away.
    words = evicted if is_evicted and reserved.get("status") != "False" else reserved
    return WorkloadView(
        asks=(metadata.get("annotations") or {}).get(ASKS_ANNOTATION) or "",
        is_active=spec.get("active") is not False,
        is_admitted=_is_true(conditions, "Admitted"),
        holds_quota=_is_true(conditions, "QuotaReserved") or bool(status.get("admission")),
        is_evicted=is_evicted,
        is_ready=_is_true(conditions, "PodsReady"),
        is_finished=_is_true(conditions, "Finished"),
        is_deleting=bool(metadata.get("deletionTimestamp")),
        is_answered=bool(conditions),
        is_refused=reserved.get("status") == "False" and reserved.get("reason") == "Inadmissible",
        message=" ".join(cut_message(words.get("message")).split())[:MESSAGE_LIMIT],
    )


def find_conditions(status: Mapping[str, Any]) -> Dict[str, Mapping[str, Any]]:
    """Return the conditions of an object by their type."""
    return {str(each.get("type")): each for each in status.get("conditions") or ()}


def _is_true(conditions: Mapping[str, Mapping[str, Any]], kind: str) -> bool:
    return (conditions.get(kind) or {}).get("status") == "True"


def explain_loss(queue: QueueView) -> str:
    """Return why pods that have started must stop; "" where they may go on.

    Where Kueue itself is gone, it takes nothing back.
    """
    if queue.problem is not None and queue.problem.cause == pod_causes.QUEUE_UNUSABLE.name:
        return ""
    workload = queue.workload
    if workload is None or workload.is_deleting:
        return f"its Workload in queue {queue.name} was deleted"
    if workload.is_evicted:
        return f"queue {queue.name} takes the quota back: {workload.message}"
    if workload.is_finished:
        return "its Workload was marked as finished"
    return "" if workload.is_admitted else f"queue {queue.name} has not admitted it"


def may_start(queue: QueueView, wanted: Optional[QueueStep]) -> bool:
    """Say whether all pods of the run may come: the quota is for what it asks for now, and it is known where it is."""
    workload = queue.workload
    if workload is None or wanted is None or queue.placements is None or workload.asks != wanted.asks:
        return False
    return workload.is_admitted and not explain_loss(queue)


def find_queue_problem(queue: QueueView, is_waiting: bool) -> Optional[Problem]:
    """Return what keeps the run in its queue, or the run controller from using it."""
    workload = queue.workload
    if queue.problem is not None or not is_waiting or workload is None:
        return queue.problem
    if not workload.is_active:
        return Problem(pod_causes.QUEUE_CLOSED.name, f"the Workload was deactivated: {workload.message}")
    if workload.is_refused:
        return Problem(pod_causes.QUEUE_CLOSED.name, workload.message)
    if workload.is_admitted and not workload.is_evicted:
        return None
    return Problem(pod_causes.QUEUED.name, workload.message or "Kueue has not looked at it yet")


def resolve_waiting(queue: QueueView, wanted: Optional[QueueStep]) -> Optional[QueueStep]:
    """Return what must be done with the Workload of a run that has no pods and waits."""
    workload = queue.workload
    if workload is None:
        return wanted
    if workload.is_deleting or queue.problem is not None:
        return None
    if workload.is_finished or (wanted is not None and workload.asks != wanted.asks):
        return QueueStep(DELETE)
    if workload.is_evicted and workload.holds_quota:
        return QueueStep(REQUEUE)
    return None
