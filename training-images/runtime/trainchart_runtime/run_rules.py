"""The rules of a run: from what is seen and what is recorded to what is recorded next, scaled and said.

Pure and level-triggered: `decide` gets the whole picture every time and may be asked twice, late, or by another
controller, and the answer is right for what is there. How a failure becomes a verdict is in run_verdict.py.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from trainchart_runtime.cluster import CHIEF, EVALUATOR, WORKER, Cluster, Task, deciding_tasks
from trainchart_runtime.contract import EXIT_TRAINING_FAILED
from trainchart_runtime.run_observation import Observation, PodView
from trainchart_runtime.run_state import (
    ENDED_PHASES,
    FAILED,
    FINISHING,
    RUNNING,
    STARTING,
    STATE_LOST,
    STOPPING,
    SUCCEEDED,
    RoleState,
    RunState,
    Verdict,
    enter_phase,
)
from trainchart_runtime.run_verdict import explain_failure, explain_late_start, explain_success, find_failures
from trainchart_runtime.termination import Termination

ROLE_REPORT_SECONDS = 10.0
"""Counts of pods alone are recorded so often at most: a start of a thousand pods is not a thousand writes."""


class RunPlan(NamedTuple):
    """What the chart asks of the controller; fixed for a controller's life."""

    run_id: str
    cluster: Cluster
    max_restarts: int
    start_deadline_seconds: float
    evaluator_grace_seconds: float


class Notice(NamedTuple):
    """Something to tell: one log line and one Event."""

    reason: str
    message: str
    is_warning: bool = False


class Scale(NamedTuple):
    """One StatefulSet that must get another number of replicas."""

    set_name: str
    replicas: int


class Decision(NamedTuple):
    """What to do now, in this order: record the state, scale, tell, leave."""

    state: RunState
    is_recorded: bool
    """False: `state` must be recorded first. A scale is never without a record, whose precondition keeps a
    controller that was replaced from acting."""
    scales: Sequence[Scale] = ()
    notices: Sequence[Notice] = ()
    wake_at: Optional[float] = None
    """Unix time at which to ask again, even if nothing changes."""
    exit_code: Optional[int] = None


def decide(plan: RunPlan, seen: Observation, recorded: Optional[RunState]) -> Decision:
    """Return what follows from one look at the release."""
    state = recorded if recorded and recorded.run_id == plan.run_id else _begin(plan, seen, recorded)
    own = [pod for pod in seen.pods if pod.run_id in (None, plan.run_id)]
    if state.phase in (STARTING, RUNNING, FINISHING):
        state = _judge(plan, own, state, seen.now)
    if state.phase == STOPPING and not seen.pods and not any(seen.sets.values()):
        assert state.verdict is not None
        state = enter_phase(state, state.verdict.result, seen.now, "every pod is gone")
    state = state._replace(roles=_count_roles(plan.cluster, own))
    scales = _resolve_scales(plan, seen, state, has_strangers=len(own) < len(seen.pods))
    is_recorded, wake_at = _resolve_recording(plan, state, recorded, seen.now)
    if scales or not is_recorded:
        is_recorded, state = False, state._replace(updated=seen.now)
    is_over = state.phase in ENDED_PHASES and not scales and (not seen.pods or state.phase == STATE_LOST)
    return Decision(
        state=state,
        is_recorded=is_recorded,
        scales=scales,
        notices=_find_notices(state, recorded),
        wake_at=wake_at,
        exit_code=None if not is_over else EXIT_TRAINING_FAILED if state.phase == FAILED else 0,
    )


def _begin(plan: RunPlan, seen: Observation, earlier: Optional[RunState]) -> RunState:
    """Return the first state of a run, or STATE_LOST where a run has ended that nobody remembers."""
    state = RunState(plan.run_id, STARTING, since=seen.now, updated=seen.now)
    if earlier is not None:
        return enter_phase(state, STARTING, seen.now, f"follows run {earlier.run_id!r} ({earlier.phase})")
    if seen.sets and not any(seen.sets.values()):
        # A new StatefulSet without replicas gets 1: only a controller has set it to 0.
        lost = "the record of this run is gone, but its pods were stopped: nothing is started; set another run.id"
        return enter_phase(state, STATE_LOST, seen.now, lost)
    return enter_phase(state, STARTING, seen.now, "a new run")


def _judge(plan: RunPlan, own: Sequence[PodView], state: RunState, now: float) -> RunState:
    """Return `state` after the successes, failures and deadlines that are due."""
    deciding = deciding_tasks(plan.cluster)
    evaluators = plan.cluster.tasks(EVALUATOR)
    state = _note_successes(state, own, {*deciding, *evaluators})
    failures = find_failures(own, plan.run_id, plan.max_restarts)
    if state.phase != FINISHING:
        leader = deciding[0]
        if str(leader) in state.succeeded:
            success = explain_success([pod for pod in own if pod.task == leader], now)
            state = enter_phase(state._replace(pending_verdict=success), FINISHING, now, f"{leader} succeeded")
        elif failures:
            return _conclude(state, explain_failure(own, failures, now), now)
        else:
            return _follow_start(plan, own, state, now)
    late = [task for task in deciding if str(task) not in state.succeeded]
    # The leader is done: only a failure of a task whose own work is needed, and not its end's echo, still counts.
    own_faults = {pod.name: failures[pod.name] for pod in own if pod.task in late and pod.name in failures}
    verdict = explain_failure(own, own_faults, now, only_origins=True)
    if verdict is not None:
        return _conclude(state, verdict, now)
    ended = {pod.task for pod in own if pod.name in failures}
    late += [task for task in evaluators if str(task) not in state.succeeded]
    late = [task for task in late if task not in ended]
    if late and now < state.since + plan.evaluator_grace_seconds:
        return state
    return _conclude(state, state.pending_verdict, now, late)


def _note_successes(state: RunState, own: Sequence[PodView], awaited: Set[Task]) -> RunState:
    known = set(state.succeeded)
    new = {
        str(pod.task)
        for pod in own
        if pod.task in awaited and any(end.succeeded and _is_of_run(end.termination, state.run_id) for end in pod.ends)
    }
    return state._replace(succeeded=(*state.succeeded, *sorted(new - known))) if new - known else state


def _is_of_run(words: Optional[Termination], run_id: str) -> bool:
    return words is None or words.run_id == run_id


def _follow_start(plan: RunPlan, own: Sequence[PodView], state: RunState, now: float) -> RunState:
    if state.phase != STARTING:
        return state
    started = {pod.task for pod in own if not pod.is_deleting and (pod.is_running or pod.ends)}
    missing = [task for task_type in plan.cluster.roles for task in plan.cluster.tasks(task_type)]
    missing = [task for task in missing if task not in started]
    if not missing:
        return enter_phase(state, RUNNING, now, "every pod is running")
    if now < state.since + plan.start_deadline_seconds:
        return state
    return _conclude(state, explain_late_start(plan.cluster, own, missing, now), now)


def _conclude(state: RunState, verdict: Optional[Verdict], now: float, late: Sequence[Task] = ()) -> RunState:
    assert verdict is not None
    verdict = verdict._replace(at=now)
    words = verdict.result
    if late:
        names = ", ".join(str(task) for task in late[:5])
        words += f"; not waited for any longer: {names}" + (f" and {len(late) - 5} more" if len(late) > 5 else "")
    if verdict.result == FAILED:
        words += f": {verdict.cause}, {verdict.pod or 'no pod'}: {verdict.error or verdict.sentence}"
    return enter_phase(state._replace(verdict=verdict, pending_verdict=None), STOPPING, now, words)


def _count_roles(cluster: Cluster, own: Sequence[PodView]) -> Dict[str, RoleState]:
    counts = {}
    for task_type, role in cluster.roles.items():
        pods = [pod for pod in own if pod.task.task_type == task_type]
        failures = sum(max(0, pod.deaths - sum(end.succeeded for end in pod.ends)) for pod in pods)
        running = sum(pod.is_running and not pod.is_deleting for pod in pods)
        counts[task_type] = RoleState(role.replicas, running, failures)
    return counts


def _resolve_scales(plan: RunPlan, seen: Observation, state: RunState, has_strangers: bool) -> Tuple[Scale, ...]:
    """Return the sets whose replicas are not what they must be, those that write checkpoints first.

    Told to stop together with ps and workers, a chief hangs in its last save.
    """
    if state.phase == STATE_LOST:
        return ()
    # Pods of another run must be gone before this run's start: two runs never train together.
    is_stopped = state.phase in (STOPPING, SUCCEEDED, FAILED) or (state.phase == STARTING and has_strangers)
    order = sorted(plan.cluster.roles, key=lambda role: (role != CHIEF, role != WORKER))
    scales: List[Scale] = []
    for task_type in order:
        role = plan.cluster.roles[task_type]
        wanted = 0 if is_stopped else role.replicas
        if role.name in seen.sets and seen.sets[role.name] != wanted:
            scales.append(Scale(role.name, wanted))
    return tuple(scales)


def _resolve_recording(
    plan: RunPlan, state: RunState, recorded: Optional[RunState], now: float
) -> Tuple[bool, Optional[float]]:
    """Return whether the record says enough, and when to ask again."""
    deadlines = []
    if state.phase == STARTING:
        deadlines.append(state.since + plan.start_deadline_seconds)
    if state.phase == FINISHING:
        deadlines.append(state.since + plan.evaluator_grace_seconds)
    is_recorded = state == recorded
    if recorded is not None and not is_recorded and state == recorded._replace(roles=state.roles):
        is_recorded = recorded.updated <= now < recorded.updated + ROLE_REPORT_SECONDS
        if is_recorded:
            deadlines.append(recorded.updated + ROLE_REPORT_SECONDS)
    return is_recorded, min(deadlines, default=None)


def _find_notices(state: RunState, recorded: Optional[RunState]) -> Tuple[Notice, ...]:
    """Return a notice for every phase that was entered since the record."""
    known = recorded.history if recorded and recorded.run_id == state.run_id else ()
    is_bad = state.phase == STATE_LOST or (state.verdict is not None and state.verdict.result == FAILED)
    new = [entry for entry in state.history if entry not in known]
    return tuple(Notice(f"Run{entry.phase}", entry.message, is_bad) for entry in new)
