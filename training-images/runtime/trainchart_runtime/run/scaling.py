"""Which sets get how many pods, in which order they go, and which pods must be recreated.

Pure; rules.py has decided the phase before.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cluster import Cluster
from trainchart_runtime.contract import QUEUE_GATE
from trainchart_runtime.run.observation import Observation, PodView
from trainchart_runtime.run.plan import Admission, Deletion, RunPlan, Scale, is_dispensable, saving_roles
from trainchart_runtime.run.problems import count_deaths, is_given_up
from trainchart_runtime.run.queueing import Placement, QueueView
from trainchart_runtime.run.state import (
    FINISHING,
    QUEUED,
    RESTARTING,
    RUNNING,
    STARTING,
    STATE_LOST,
    STOPPING,
    SUSPENDED,
    VERDICTS,
    RunState,
)

_CUT_SHORT = (causes.STOPPED.name, causes.ACTIVE_DEADLINE.name)
"""Verdicts about programs that are well and would go on: they get the time to save."""
_BACK_OFF_DEATHS = 2
"""The kubelet starts a container again at once after its first death, after 10 s and 20 s later on."""
_LONG_BACK_OFF_DEATHS = 3
"""A recreated worker has another address, which a living chief looks up only after 30 s."""


def _is_down(state: RunState, has_strangers: bool) -> bool:
    """Say whether no pod of this run may be: the run is over or held, or pods of another run must go first."""
    return state.phase in (QUEUED, RESTARTING, SUSPENDED, STOPPING, *VERDICTS) or (
        state.phase == STARTING and has_strangers
    )


def resolve_scales(group: Cluster, seen: Observation, state: RunState, has_strangers: bool) -> Tuple[Scale, ...]:
    """Return the sets whose replicas are not what they must be now, those that write checkpoints first."""
    if state.phase == STATE_LOST:
        return ()
    down, savers = _is_down(state, has_strangers), saving_roles(group)
    # A program that has come to its end writes nothing more: then no task waits for another.
    waits = down and (state.verdict is None or state.verdict.cause in _CUT_SHORT)
    saving = (pod for pod in seen.pods if pod.task.task_type in savers and not pod.gates)
    is_saving = waits and any(not pod.is_lost(seen.now) for pod in saving)
    scales: List[Scale] = []
    for task_type in sorted(group.roles, key=lambda role: role not in savers):
        role = group.roles[task_type]
        if role.name not in seen.sets or (is_saving and task_type not in savers):
            continue
        wanted = 0 if down else _count_needed(group, task_type, state)
        if seen.sets[role.name].replicas != wanted:
            scales.append(Scale(role.name, wanted))
    return tuple(scales)


def _count_needed(group: Cluster, task_type: str, state: RunState) -> int:
    """Return how many pods a role needs now: the last ones go when they have ended well and no task waits for them."""
    tasks = list(group.tasks(task_type))
    while state.phase in (RUNNING, FINISHING) and tasks:
        if str(tasks[-1]) not in state.succeeded or not is_dispensable(group, tasks[-1]):
            break
        tasks.pop()
    return len(tasks)


def resolve_deletions(
    plan: RunPlan, group: Cluster, seen: Observation, own: Sequence[PodView], state: RunState
) -> Tuple[Deletion, ...]:
    """Return the pods that must be recreated: those that the kubelet lets wait, those of lost nodes, and newcomers."""
    deletions = []
    for pod in own:
        is_live = state.phase in (STARTING, RUNNING, FINISHING)
        is_useless = _waits_too_long(plan, group, pod, state) if is_live else is_newcomer(group, pod, state)
        if is_useless and not pod.is_deleting:
            deletions.append(Deletion(pod.name, pod.uid))
    # One of an earlier run is in the way as well.
    lost = [pod for pod in seen.pods if plan.force_delete_lost and _is_on_lost_node(pod, seen.now)]
    deletions += [Deletion(pod.name, pod.uid, is_forced=True) for pod in lost]
    # The controller may delete pods of those names only that its chart has.
    allowed = {plan.cluster.pod_name(task) for role in plan.cluster.roles for task in plan.cluster.tasks(role)}
    return tuple(deletion for deletion in deletions if deletion.pod_name in allowed)


def resolve_admissions(
    plan: RunPlan, own: Sequence[PodView], queue: QueueView, state: RunState
) -> Tuple[Admission, ...]:
    """Return the pods that wait for the queue alone, which has room for them."""
    if state.phase not in (STARTING, RUNNING, FINISHING) or queue.placements is None:
        return ()
    admissions = []
    for pod in own:
        if QUEUE_GATE not in pod.gates or pod.is_deleting or is_newcomer(plan.cluster, pod, state):
            continue
        placement = queue.placements.get(pod.task.task_type, Placement())
        more = [each for each in placement.tolerations if each not in pod.tolerations]
        gates = tuple(gate for gate in pod.gates if gate != QUEUE_GATE)
        admissions.append(Admission(pod.name, pod.uid, gates, placement, (*pod.tolerations, *more)))
    return tuple(admissions)


def _is_on_lost_node(pod: PodView, now: float) -> bool:
    return pod.problem is not None and pod.problem.cause == pod_causes.NODE_LOST.name and pod.is_lost(now)


def is_newcomer(cluster: Cluster, pod: PodView, state: RunState) -> bool:
    """Say whether a pod is as an upgrade wants it, and not as its attempt began: it must not train beside the others.

    While Kubernetes has not looked at a new set yet, it is not known how the attempt began.
    """
    first = state.revisions.get(cluster.roles[pod.task.task_type].name)
    return bool(first and pod.revision and pod.revision != first)


def _waits_too_long(plan: RunPlan, group: Cluster, pod: PodView, state: RunState) -> bool:
    known = state.deaths.get(str(pod.task))
    # With last words the launcher has given up: a new pod would forget that, and try again.
    if not pod.is_backing_off or not count_deaths(pod) or known is None:
        return False
    deaths = _LONG_BACK_OFF_DEATHS if is_dispensable(group, pod.task) else _BACK_OFF_DEATHS
    return known.total >= deaths and not is_given_up(plan.max_restarts, pod, known.total)
