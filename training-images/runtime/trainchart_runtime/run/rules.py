"""The rules of a run: from what is seen and what is recorded to what is recorded next, scaled and said.

Pure and level-triggered: `decide` gets the whole picture every time and may be asked twice, late, or by another
controller, and the answer is right for what is there. What pods go through is in problems.py and leader.py, when a
verdict is due in judge.py, what it says in verdict.py, and how the sets are scaled in scaling.py.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from trainchart_runtime.cluster import Cluster, deciding_tasks
from trainchart_runtime.contract import EXIT_TRAINING_FAILED
from trainchart_runtime.image_builds import add_builds
from trainchart_runtime.pod_problems import CLAIM_CAUSES
from trainchart_runtime.progress import add_counts
from trainchart_runtime.run.judge import SETTLE_SECONDS, conclude, judge, list_names
from trainchart_runtime.run.leader import note_leader_end, note_progress
from trainchart_runtime.run.observation import LOST_SECONDS, Observation, PodView
from trainchart_runtime.run.plan import (
    DESIRED_RUNNING,
    DESIRED_STOPPED,
    DESIRED_SUSPENDED,
    FINISH_FIRST,
    Decision,
    Notice,
    RunPlan,
    resolve_group,
)
from trainchart_runtime.run.problems import (
    find_missing,
    lacks_preemptor,
    note_deaths,
    note_disruptions,
    note_failures,
    note_preemptors,
    note_problems,
    note_replacements,
    note_scalings,
)
from trainchart_runtime.run.queue_rules import follow_queue, has_left_queue, resolve_queue_step
from trainchart_runtime.run.scaling import is_newcomer, resolve_admissions, resolve_deletions, resolve_scales
from trainchart_runtime.run.state import (
    ENDED_PHASES,
    FAILED,
    FINISHING,
    QUEUED,
    RESTARTING,
    RUNNING,
    STARTING,
    STATE_LOST,
    STOPPED,
    STOPPING,
    SUCCEEDED,
    SUSPENDED,
    RoleState,
    RunState,
    enter_phase,
)
from trainchart_runtime.run.verdict import add_build, add_changes, add_spared, explain_stop

_EXIT_CODES = {FAILED: EXIT_TRAINING_FAILED, STOPPED: EXIT_TRAINING_FAILED}
REPORT_SECONDS = 10.0
"""Counts alone, of pods or of ends of their programs, are recorded so often at most: what a thousand pods do or tell is
not a thousand writes."""
_PREEMPTOR_SECONDS = 120.0
"""By then an Event says which pod took the place of another, or none will."""
PROGRESS_SECONDS = 30.0
"""So is the step of a training."""


def decide(plan: RunPlan, seen: Observation, recorded: Optional[RunState]) -> Decision:
    """Return what follows from one look at the release."""
    state = recorded if recorded and recorded.run_id == plan.run_id else _begin(plan, seen, recorded)
    state = _follow_clock(state, seen.now)
    if state.phase == QUEUED:
        # The attempt has not begun: it is made of what the newest values ask for.
        state = state._replace(roles={})
    group = resolve_group(plan.cluster, state.roles)
    of_run = [pod for pod in seen.pods if pod.run_id in (None, plan.run_id)]
    has_strangers = len(of_run) < len(seen.pods)
    # A pod that foreign scaling has made is of no task, and goes again: what becomes of it says nothing.
    own = [pod for pod in of_run if pod.task.task_index < group.roles[pod.task.task_type].replicas]
    gone = [pod for pod in seen.departed if pod.run_id in (None, plan.run_id)]
    state = _note(plan, group, seen, own, gone, state)
    if state.phase in (STARTING, RUNNING, FINISHING):
        parked = [pod for pod in own if pod.uid in seen.reports and seen.reports[pod.uid].is_parked]
        state = judge(plan, group, own, gone, parked, state, seen.now)
    state = add_build(add_changes(state, (*own, *gone), seen.sets), (*own, *gone))
    state = add_spared(state, (*own, *gone))
    state = _follow_wishes(plan, seen, own, state)
    state = _leave_pods_behind(plan, seen, state)
    group = resolve_group(plan.cluster, state.roles)
    state = follow_queue(plan, group, seen, state)
    state = state._replace(roles=_count_roles(group, own, state))
    scales = resolve_scales(group, seen, state, has_strangers)
    deletions = resolve_deletions(plan, group, seen, of_run, state)
    admissions = resolve_admissions(plan, own, seen.queue, state)
    queue_step = resolve_queue_step(plan, group, seen, state)
    is_recorded, wake_at = _resolve_recording(plan, seen, state, recorded)
    if scales or deletions or admissions or queue_step or not is_recorded:
        is_recorded, state = False, state._replace(updated=seen.now)
    is_left = not scales and has_left_queue(plan, seen)
    is_over = state.phase in ENDED_PHASES and is_left and (_are_gone(seen) or state.phase == STATE_LOST)
    return Decision(
        state=state,
        is_recorded=is_recorded,
        scales=scales,
        deletions=deletions,
        admissions=admissions,
        queue_step=queue_step,
        notices=_find_notices(state, recorded),
        wants_events=_wants_events(group, own, state, seen.now),
        keeps_logs=state.phase == STOPPING and (recorded is None or recorded.phase != STOPPING),
        wake_at=wake_at,
        exit_code=_EXIT_CODES.get(state.phase, 0) if is_over else None,
    )


def _begin(plan: RunPlan, seen: Observation, earlier: Optional[RunState]) -> RunState:
    """Return the first state of a run, or STATE_LOST where a run has ended whose record is gone."""
    first = QUEUED if plan.queue else STARTING
    state = RunState(plan.run_id, first, since=seen.now, updated=seen.now, active_since=seen.now)
    if earlier is not None:
        name = f"run {earlier.run_id}" if earlier.run_id else "the first run"
        return enter_phase(state, first, seen.now, f"follows {name} ({earlier.phase})")
    is_stopped = bool(seen.sets) and not any(view.replicas for view in seen.sets.values())
    if is_stopped and plan.desired_state == DESIRED_RUNNING:
        # A new StatefulSet without replicas gets 1: only a controller has set it to 0.
        lost = "the record of this run was deleted after its pods were stopped: nothing is started; set another run.id"
        return enter_phase(state, STATE_LOST, seen.now, lost)
    return enter_phase(state, first, seen.now, f"a new run, in queue {plan.queue}" if plan.queue else "a new run")


def _follow_clock(state: RunState, now: float) -> RunState:
    """Return `state` without times that are still to come: a clock that was set back must not put deadlines off."""
    return state._replace(
        since=min(state.since, now),
        active_since=min(state.active_since, now),
        failure_seen_at=None if state.failure_seen_at is None else min(state.failure_seen_at, now),
        missing_since=None if state.missing_since is None else min(state.missing_since, now),
    )


def _note(
    plan: RunPlan, group: Cluster, seen: Observation, own: Sequence[PodView], gone: Sequence[PodView], state: RunState
) -> RunState:
    """Return `state` with what has happened to the pods, and the revisions that the attempt began with."""
    if state.phase in (STARTING, RUNNING, FINISHING):
        state = note_deaths(plan, own, state, seen.now)
        state = note_failures(group, own, seen.reports, state, seen.now)
        state = note_scalings(group, seen.sets, state, seen.now)
        state = note_disruptions(own, gone, state, seen.now)
        state = note_preemptors(state, seen.events)
        state = note_replacements(own, state, seen.now)
        leader = deciding_tasks(group)[0]
        state = note_progress(next((pod for pod in own if pod.task == leader), None), seen.reports, state, seen.now)
        seen_first = {name: view.revision for name, view in seen.sets.items() if view.revision}
        found = [(pod.build, pod.node) for pod in (*own, *gone) if pod.build is not None]
        state = state._replace(revisions={**seen_first, **state.revisions}, builds=add_builds(state.builds, found))
    if state.phase in (STARTING, RUNNING, RESTARTING, SUSPENDED):
        state = note_leader_end(deciding_tasks(group)[0], (*own, *gone), state)
    return note_problems(group, seen, own, state)


def _follow_wishes(plan: RunPlan, seen: Observation, own: Sequence[PodView], state: RunState) -> RunState:
    """Return `state` after what the values ask for, and after an upgrade that changes pods."""
    now = seen.now
    if state.phase not in (QUEUED, STARTING, RUNNING, FINISHING, RESTARTING, SUSPENDED):
        return state
    if plan.desired_state == DESIRED_STOPPED:
        return conclude(state, state.pending_verdict or explain_stop(state.progress, now), now)
    if state.phase == FINISHING:
        return state
    if plan.desired_state == DESIRED_SUSPENDED:
        if state.phase == SUSPENDED:
            return state
        return enter_phase(
            state, SUSPENDED, now, "run.desiredState is suspended: the pods get SIGTERM, to save and stop"
        )
    if state.phase == SUSPENDED:
        state = state._replace(active_since=now)
        return _restart(state, now, "run.desiredState is running again")
    if state.phase in (QUEUED, RESTARTING):
        return state
    changed = [name for name, view in seen.sets.items() if view.revision and view.revision != state.revisions.get(name)]
    mixed = [pod.name for pod in own if is_newcomer(plan.cluster, pod, state)]
    if mixed:
        return _restart(state, now, f"{list_names(mixed)} came back with the changes of an upgrade, others did not")
    if changed and plan.on_change != FINISH_FIRST:
        return _restart(state, now, f"the pods of {list_names(changed)} were changed, by an upgrade or by hand")
    return state


def _restart(state: RunState, now: float, words: str) -> RunState:
    """Return `state` in Restarting, since a user has changed something: what failed before is not held against it."""
    if state.progress is not None:
        state = state._replace(progress=state.progress._replace(fruitless_restarts=0))
    return enter_phase(state, RESTARTING, now, words)


def _leave_pods_behind(plan: RunPlan, seen: Observation, state: RunState) -> RunState:
    """Return `state` in its next phase where it was only waiting for pods to go."""
    if any(view.replicas for view in seen.sets.values()):
        return state
    if state.phase == RESTARTING and not seen.pods:
        state = state._replace(
            attempt=add_counts(state.attempt, 1),
            roles={},
            revisions={},
            builds={},
            pods={},
            missing_since=None,
            failure_seen_at=None,
        )
        return enter_phase(state, QUEUED if plan.queue else STARTING, seen.now, f"attempt {state.attempt}")
    if state.phase == STOPPING and _are_gone(seen):
        assert state.verdict is not None
        lost = [f"{pod.name} on {pod.node}" for pod in seen.pods]
        words = f"did not wait for {list_names(lost)}, whose node does not answer" if lost else "every pod is gone"
        return enter_phase(state, state.verdict.result, seen.now, words)
    return state


def _are_gone(seen: Observation) -> bool:
    """Say whether no pod is left but those that a lost node keeps from going."""
    return all(pod.is_lost(seen.now) for pod in seen.pods)


def _count_roles(group: Cluster, own: Sequence[PodView], state: RunState) -> Dict[str, RoleState]:
    counts = {}
    for task_type, role in group.roles.items():
        pods = [pod for pod in own if pod.task.task_type == task_type]
        running = sum(pod.is_running and not pod.is_deleting and str(pod.task) not in state.succeeded for pod in pods)
        dead = [*state.deaths.items(), *state.restarts.items()]
        failures = add_counts(*(deaths.total for task, deaths in dead if task.rpartition("-")[0] == task_type))
        finished = sum(task.rpartition("-")[0] == task_type for task in state.succeeded)
        counts[task_type] = RoleState(role.replicas, running, failures, finished)
    return counts


def _wants_events(group: Cluster, own: Sequence[PodView], state: RunState, now: float) -> bool:
    """Say whether a pod is missing whose own status does not say why, or made room for one that is not known yet."""
    if state.phase not in (STARTING, RUNNING, FINISHING):
        return False
    if any(lacks_preemptor(each) and now < each.at + _PREEMPTOR_SECONDS for each in state.incidents):
        return True
    explained = {pod.task for pod in own if pod.problem and pod.problem.cause not in CLAIM_CAUSES}
    return any(task not in explained and str(task) not in state.succeeded for task in find_missing(group, own))


def _resolve_recording(
    plan: RunPlan, seen: Observation, state: RunState, recorded: Optional[RunState]
) -> Tuple[bool, Optional[float]]:
    """Return whether the record says enough, and when to ask again."""
    deadlines = [pod.gone_by + LOST_SECONDS for pod in seen.pods if pod.is_deleting and not pod.is_lost(seen.now)]
    deadlines += _find_deadlines(plan, state)
    is_recorded = state == recorded
    if recorded is not None and not is_recorded:
        small = ("roles", "problems", "pods", "restarts", "reported_failures")
        if state == recorded._replace(progress=state.progress, **{name: getattr(state, name) for name in small}):
            is_progress_only = all(getattr(state, name) == getattr(recorded, name) for name in small)
            until = recorded.updated + (PROGRESS_SECONDS if is_progress_only else REPORT_SECONDS)
            # Why a run waits in its queue is all that its users ask then.
            is_news = state.phase == QUEUED and _list_causes(state) != _list_causes(recorded)
            # What a pod that is gone has told cannot be seen again.
            is_news = is_news or _find_end(state) != _find_end(recorded)
            is_recorded = recorded.updated <= seen.now < until and not is_news
            if is_recorded:
                deadlines.append(until)
    return is_recorded, min(deadlines, default=None)


def _find_end(state: RunState) -> str:
    return state.progress.end if state.progress else ""


def _list_causes(state: RunState) -> List[str]:
    return [problem.cause for problem in state.problems]


def _find_deadlines(plan: RunPlan, state: RunState) -> List[float]:
    deadlines = []
    if state.phase == STARTING and plan.start_deadline_seconds:
        deadlines.append(state.since + plan.start_deadline_seconds)
    if state.phase == FINISHING:
        deadlines.append(state.since + plan.evaluator_grace_seconds)
    if state.phase in (STARTING, RUNNING):
        if plan.active_deadline_seconds:
            deadlines.append(state.active_since + plan.active_deadline_seconds)
        if state.failure_seen_at is not None:
            deadlines.append(state.failure_seen_at + SETTLE_SECONDS)
        if state.missing_since is not None and plan.start_deadline_seconds:
            deadlines.append(state.missing_since + plan.start_deadline_seconds)
    return deadlines


def _find_notices(state: RunState, recorded: Optional[RunState]) -> Tuple[Notice, ...]:
    """Return a notice for every incident and every phase that was entered since the record."""
    known = recorded if recorded and recorded.run_id == state.run_id else None
    reported = set(known.incidents) if known else set()
    notices = [
        Notice("RunTaskFinished", f"{task} finished successfully before the run")
        for task in state.succeeded
        if state.phase == RUNNING and (known is None or task not in known.succeeded)
    ]
    notices += [
        Notice("RunIncident", f"{each.pod} on {each.node}: {each.cause}: {each.error}; {each.action}", is_warning=True)
        for each in state.incidents
        if each not in reported
    ]
    entered = set(known.history) if known else set()
    is_bad = state.phase == STATE_LOST or (state.verdict is not None and state.verdict.result != SUCCEEDED)
    notices += [Notice(f"Run{entry.phase}", entry.message, is_bad) for entry in state.history if entry not in entered]
    return tuple(notices)
