"""When a run is judged: successes, failures and deadlines, as the verdict that they call for.

Pure; part of rules.py's decision. What a verdict says is in verdict.py.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence

from trainchart_runtime.causes import (
    ACTIVE_DEADLINE,
    NO_PROGRESS,
    PEER_LOST,
    PEER_MISSING,
    PEER_UNRESOLVABLE,
    SERVICE_UNREACHABLE,
    START_DEADLINE,
)
from trainchart_runtime.cluster import EVALUATOR, Cluster, Task, deciding_tasks
from trainchart_runtime.log_text import shorten
from trainchart_runtime.run.observation import PodView
from trainchart_runtime.run.plan import RunPlan, is_dispensable
from trainchart_runtime.run.problems import find_missing
from trainchart_runtime.run.state import (
    FAILED,
    FINAL_LINES_KEPT,
    FINISHING,
    RUNNING,
    STARTING,
    STOPPING,
    RunState,
    Verdict,
    enter_phase,
)
from trainchart_runtime.run.verdict import (
    add_evaluation,
    explain_deadline,
    explain_failure,
    explain_fruitless,
    explain_late_start,
    explain_success,
    find_failures,
)
from trainchart_runtime.running_causes import CPU_THROTTLED, RUNNING_CAUSES
from trainchart_runtime.termination import Termination

_OF_PEERS = (PEER_LOST.name, PEER_MISSING.name, PEER_UNRESOLVABLE.name, SERVICE_UNREACHABLE.name)
_OF_RUNNING = (*_OF_PEERS, *(cause.name for cause in RUNNING_CAUSES))
"""Problems that launchers report; all others keep pods from running."""
_OF_SLOWNESS = (*_OF_PEERS, NO_PROGRESS.name, START_DEADLINE.name, ACTIVE_DEADLINE.name)
"""Causes of the end of a run that may only be too slow."""
_REASONS_SHOWN = 2
_REASON_LIMIT = 160
SETTLE_SECONDS = 2.0
"""Tasks fail within tenths of a second of each other, but kubelets report every second: the first failure is
looked for among those that have come by then."""
FRUITLESS_RESTARTS = 5
"""So many starts of the leading task's program without a new highest step, and the run is given up."""


def judge(
    plan: RunPlan,
    group: Cluster,
    own: Sequence[PodView],
    gone: Sequence[PodView],
    parked: Sequence[PodView],
    state: RunState,
    now: float,
) -> RunState:
    """Return `state` after the successes, failures and deadlines that are due.

    A pod that is `gone` has succeeded all the same; a failure of it is no failure of the one that follows it. The
    launcher of a `parked` pod found that its task had succeeded before, in a pod whose end was not seen.
    """
    deciding = deciding_tasks(group)
    evaluators = group.tasks(EVALUATOR)
    state = _note_successes(state, (*own, *gone), parked, now)
    failures = find_failures(own, plan.run_id, plan.max_restarts, state.deaths)
    if state.phase != FINISHING:
        leader = deciding[0]
        if str(leader) not in state.succeeded:
            return _judge_unfinished(plan, group, own, failures, state, now)
        success = explain_success([pod for pod in (*own, *gone) if pod.task == leader], now)
        state = enter_phase(state._replace(pending_verdict=success), FINISHING, now, f"{leader} succeeded")
    late = [task for task in deciding if str(task) not in state.succeeded]
    # The leader is done: only a failure of a task whose own work is needed, and not its end's echo, still counts.
    own_faults = {pod.name: failures[pod.name] for pod in own if pod.task in late and pod.name in failures}
    verdict = explain_failure(own, own_faults, now, only_origins=True)
    if verdict is not None:
        return conclude(state, verdict, now)
    ended = {pod.task for pod in own if pod.name in failures}
    late += [task for task in evaluators if str(task) not in state.succeeded]
    late = [task for task in late if task not in ended]
    if late and now < state.since + plan.evaluator_grace_seconds:
        return state
    assert state.pending_verdict is not None
    verdict = add_evaluation(state.pending_verdict, [pod for pod in own if pod.task in evaluators])
    return conclude(state, verdict, now, late)


def _judge_unfinished(
    plan: RunPlan,
    group: Cluster,
    own: Sequence[PodView],
    failures: Dict[str, Termination],
    state: RunState,
    now: float,
) -> RunState:
    if failures:
        seen_at = now if state.failure_seen_at is None else state.failure_seen_at
        if now < seen_at + SETTLE_SECONDS:
            return state._replace(failure_seen_at=seen_at)
        return conclude(state, explain_failure(own, failures, now), now)
    state = state._replace(failure_seen_at=None)
    task = deciding_tasks(group)[0]
    leader, name = next((pod for pod in own if pod.task == task), None), group.pod_name(task)
    if state.progress and state.phase == STARTING and now > state.since:
        # A task whose peers have not come yet may die over and over: run.startDeadline ends such a run.
        state = state._replace(progress=state.progress._replace(fruitless_restarts=0))
    if state.progress and state.progress.fruitless_restarts > FRUITLESS_RESTARTS:
        return conclude(state, explain_fruitless(leader, name, state, now), now)
    if plan.active_deadline_seconds and now >= state.active_since + plan.active_deadline_seconds:
        late = explain_deadline(leader, name, plan.active_deadline_seconds, state.progress, now)
        return conclude(state, late, now)
    return _follow_start(plan, group, own, state, now)


def _note_successes(state: RunState, pods: Sequence[PodView], parked: Sequence[PodView], now: float) -> RunState:
    found = {str(pod.task): now for pod in parked}
    lines = dict(state.final_lines)
    for pod in pods:
        ends = [end for end in pod.ends if end.succeeded and _is_of_run(end.termination, state.run_id)]
        if ends:
            words = ends[-1].termination
            found[str(pod.task)] = (words.finished_at if words else ends[-1].finished_at) or now
            if words and words.lines and len(lines) < FINAL_LINES_KEPT:
                lines.setdefault(str(pod.task), words.lines[-1])
    return state._replace(succeeded={**found, **state.succeeded}, final_lines=lines) if found else state


def _is_of_run(words: Optional[Termination], run_id: str) -> bool:
    return words is None or words.run_id == run_id


def _follow_start(plan: RunPlan, group: Cluster, own: Sequence[PodView], state: RunState, now: float) -> RunState:
    missing = find_missing(group, own)
    if state.phase == STARTING:
        if not missing:
            return enter_phase(state, RUNNING, now, "every pod is running")
        since: Optional[float] = state.since
    else:
        missing = [task for task in missing if not is_dispensable(group, task) and str(task) not in state.succeeded]
        since = (state.missing_since or now) if missing else None
        state = state._replace(missing_since=since)
    if since is None or not plan.start_deadline_seconds or now < since + plan.start_deadline_seconds:
        return state
    return conclude(state, explain_late_start(group, own, missing, state.problems, now), now)


def conclude(state: RunState, verdict: Optional[Verdict], now: float, late: Sequence[Task] = ()) -> RunState:
    """Return `state` with its verdict, in the phase in which the pods go."""
    assert verdict is not None
    verdict = _add_throttled(_add_absent(verdict._replace(at=now), state), state)
    words = verdict.result
    if late:
        words += f"; no longer waiting for: {list_names([str(task) for task in late])}"
    if verdict.result == FAILED:
        words += f": {verdict.cause}, {verdict.pod or 'no pod'}: {verdict.error or verdict.sentence}"
    return enter_phase(state._replace(verdict=verdict, pending_verdict=None), STOPPING, now, words)


def _add_absent(verdict: Verdict, state: RunState) -> Verdict:
    """Return a verdict about a peer that was not reached with the pods that did not run then, and why."""
    if verdict.result != FAILED or verdict.cause not in _OF_PEERS:
        return verdict
    absent = [each for each in state.problems if each.cause not in _OF_RUNNING and each.subject != verdict.pod]
    reasons = dict.fromkeys((each.cause, shorten(each.message, _REASON_LIMIT)) for each in absent)
    for cause, message in list(reasons)[:_REASONS_SHOWN]:
        names = list_names([each.subject for each in absent if each.cause == cause])
        verdict = verdict._replace(error=f"{verdict.error}; {names} did not run: {message} [{cause}]".lstrip("; "))
    return verdict


def _add_throttled(verdict: Verdict, state: RunState) -> Verdict:
    """Return a verdict about a run that may only be too slow with the pods that can hardly run, and what they need."""
    slow = [each for each in state.problems if each.cause == CPU_THROTTLED.name]
    if verdict.result != FAILED or verdict.cause not in _OF_SLOWNESS or not slow:
        return verdict
    names = [each.subject for each in slow]
    words = f"{list_names(names)} {'was' if len(names) == 1 else 'were'} {slow[0].message} [{CPU_THROTTLED.name}]"
    roles = {name.rpartition("-")[0].rpartition("-")[2] for name in names}
    hint = CPU_THROTTLED.hint.replace("roles.ROLE", f"roles.{roles.pop()}") if len(roles) == 1 else CPU_THROTTLED.hint
    return verdict._replace(
        error=f"{verdict.error}; {words}".lstrip("; "), hint=f"{hint} If more CPU does not help: {verdict.hint}"
    )


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
