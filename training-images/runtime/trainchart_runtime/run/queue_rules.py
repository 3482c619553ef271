"""When a run waits in its queue, leaves it, goes back to it, and gives its quota back.

Pure; part of rules.py's decision. What the Workload says is in queueing.py.
"""

from __future__ import annotations

from typing import Optional

from trainchart_runtime import pod_causes
from trainchart_runtime.cluster import Cluster
from trainchart_runtime.run.judge import conclude
from trainchart_runtime.run.observation import Observation
from trainchart_runtime.run.plan import RunPlan
from trainchart_runtime.run.queueing import (
    DELETE,
    FINISH,
    READY,
    QueueStep,
    explain_loss,
    may_start,
    plan_workload,
    resolve_waiting,
)
from trainchart_runtime.run.state import (
    ENDED_PHASES,
    FINISHING,
    QUEUED,
    RESTARTING,
    RUNNING,
    STARTING,
    SUCCEEDED,
    SUSPENDED,
    RunState,
    enter_phase,
)

_REASONS = {SUCCEEDED: "Succeeded"}


def follow_queue(plan: RunPlan, group: Cluster, seen: Observation, state: RunState) -> RunState:
    """Return `state` after what the queue gives and takes back."""
    if not plan.queue:
        return (
            enter_phase(state, STARTING, seen.now, "it no longer waits in a queue") if state.phase == QUEUED else state
        )
    if state.phase == QUEUED:
        if not may_start(seen.queue, _plan_workload(plan, group, seen)) or _has_pods(seen):
            return state
        # Time in the queue is not the run's: neither deadline counts it.
        state = state._replace(active_since=state.active_since + seen.now - state.since)
        return enter_phase(state, STARTING, seen.now, f"admitted by queue {plan.queue}")
    loss = explain_loss(seen.queue) if state.phase in (STARTING, RUNNING, FINISHING) else ""
    if not loss:
        return state
    if state.phase == FINISHING:
        return conclude(state, state.pending_verdict, seen.now)
    return enter_phase(state, RESTARTING, seen.now, f"{loss}; the pods get SIGTERM, to save and stop")


def resolve_queue_step(plan: RunPlan, group: Cluster, seen: Observation, state: RunState) -> Optional[QueueStep]:
    """Return what must be done with the run's Workload now."""
    workload, problem = seen.queue.workload, seen.queue.problem
    is_usable = problem is None or problem.cause != pod_causes.QUEUE_UNUSABLE.name
    if not plan.queue:
        return None
    if state.phase == QUEUED:
        return (
            None if _has_pods(seen) or not is_usable else resolve_waiting(seen.queue, _plan_workload(plan, group, seen))
        )
    if workload is None or workload.is_deleting:
        return None
    if state.phase in (RUNNING, FINISHING) and workload.is_admitted and not workload.is_ready:
        return QueueStep(READY)
    if state.phase == SUSPENDED and not _has_pods(seen):
        return QueueStep(DELETE)
    if state.phase in ENDED_PHASES and not _has_pods(seen) and not workload.is_finished:
        result = state.verdict.result if state.verdict else state.phase
        words = state.verdict.cause if state.verdict else ""
        return QueueStep(FINISH, reason=_REASONS.get(result, "Failed"), message=f"{result}: {words}")
    return None


def has_left_queue(plan: RunPlan, seen: Observation) -> bool:
    """Say whether the run holds no quota any more."""
    workload = seen.queue.workload
    return not plan.queue or workload is None or workload.is_finished or workload.is_deleting


def _plan_workload(plan: RunPlan, group: Cluster, seen: Observation) -> Optional[QueueStep]:
    templates = {name: view.template for name, view in seen.sets.items()}
    return plan_workload(plan.queue, plan.queue_priority_class, group, templates)


def _has_pods(seen: Observation) -> bool:
    """Say whether a pod has, or had, a node, and may still hold what the quota is for."""
    return any(not pod.gates and not pod.is_lost(seen.now) for pod in seen.pods)
