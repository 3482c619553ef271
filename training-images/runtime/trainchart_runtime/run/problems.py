"""What pods go through, as the record keeps it: deaths, incidents, what keeps them from running.

Pure. None of this ends a run by itself: rules.py judges by it, people read it.
"""

from __future__ import annotations

from typing import Container, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.cluster import Cluster, Task, deciding_tasks
from trainchart_runtime.contract import QUEUE_GATE
from trainchart_runtime.pod_problems import (
    CLAIM_CAUSES,
    Event,
    Problem,
    find_claim_problem,
    find_pod_event,
    find_set_problem,
)
from trainchart_runtime.run.observation import ContainerEnd, LauncherReport, Observation, PodView, SetView
from trainchart_runtime.run.peer_problems import CLOCK_LEAD_SECONDS, find_peer_problems, is_echo
from trainchart_runtime.run.plan import RunPlan
from trainchart_runtime.run.queueing import find_queue_problem
from trainchart_runtime.run.report_problems import find_report_problems
from trainchart_runtime.run.state import (
    INCIDENTS_KEPT,
    PROBLEMS_KEPT,
    QUEUED,
    Deaths,
    Incident,
    PodProblem,
    ReportedFailures,
    RunState,
    Scaling,
)
from trainchart_runtime.start_words import name_start_cause
from trainchart_runtime.termination import FAILURES_KEPT, Termination

OOM_RESTARTS = 2
"""A program that ran out of memory so often does so again."""
_UID_LENGTH = 8
_SCALING_SECONDS = 120.0
"""A pod that is deleted so long after its set was scaled down has another reason: the set is restored at once."""
_CLOCK_LAG_SECONDS = 600.0
_BUDGET_SECONDS = 3600.0
"""Within this time, at most FAILURES_KEPT failures that a launcher reports become incidents. Others are only counted,
because a hostile program can make up any number of them."""
_ON_SIGTERM = 128 + 15
"""The exit code of a container that was stopped before its launcher could leave a word."""
_NOT_STARTABLE = ("StartError", "ContainerCannotRun")
_BY_KUBELET = "the container is started again"
_BY_LAUNCHER = "the launcher starts the program again in its pod"
_PREEMPTOR = "it made room for the pod with the uid "
GIVEN_UP = "given up"
BY_SET = "the StatefulSet recreates the pod"


def note_deaths(plan: RunPlan, own: Sequence[PodView], state: RunState, now: float) -> RunState:
    """Return `state` with the deaths of containers that left no last words, also of pods that were recreated.

    A pod that the cluster takes away dies of that: the kubelet kills what does not end in time, and counts one more.
    """
    deaths: Dict[str, Deaths] = dict(state.deaths)
    incidents: List[Incident] = []
    for pod in own:
        if is_taken_away(pod):
            continue
        known = deaths.get(str(pod.task))
        if known is not None and known.uid != pod.uid:
            known = deaths[str(pod.task)] = Deaths(pod.uid, known.total, 0)
        count = count_deaths(pod)
        if count > (known.current if known else 0):
            total = Deaths(pod.uid, known.earlier if known else 0, count)
            deaths[str(pod.task)] = total
            incidents.append(_word_death(plan, pod, total.total, now))
    return _add_incidents(state._replace(deaths=deaths), incidents)


def note_disruptions(own: Sequence[PodView], gone: Sequence[PodView], state: RunState, now: float) -> RunState:
    """Return `state` with the pods that the cluster takes away, or has taken: evicted, preempted, on a lost node."""
    known, died = set(state.taken_away), {incident.uid for incident in state.incidents}
    incidents = []
    pods = dict(state.pods)
    # An evicted pod has ended before it is deleted, and then it is gone at once.
    ended = [pod for pod in own if pod.is_deleting or (is_taken_away(pod) and not pod.is_running)]
    for pod in (*gone, *ended):
        pods[str(pod.task)] = ""
        if pod.uid in known or str(pod.task) in state.succeeded:
            continue
        known.add(pod.uid)
        problem = pod.problem or Problem(pod_causes.POD_DELETED.name, "")
        cause = causes.CAUSES.get(problem.cause)
        if cause is None or cause.restart != pod_causes.POD_DELETED.restart:
            problem = Problem(pod_causes.POD_DELETED.name, "")
        if problem.cause == pod_causes.POD_DELETED.name and pod.uid in died:
            # The controller itself deletes a pod that the kubelet lets wait after its deaths.
            continue
        if problem.cause == pod_causes.POD_DELETED.name:
            problem = problem._replace(message=problem.message or _word_scaling(pod, state, now))
        is_lost = problem.cause == pod_causes.NODE_LOST.name
        action = "waiting: Kubernetes does not replace the pods of a node that does not respond" if is_lost else BY_SET
        incidents.append(Incident(now, pod.name, pod.node, problem.cause, action, error=problem.message, uid=pod.uid))
    if len(known) > len(state.taken_away):
        state = state._replace(taken_away=tuple(sorted(known.intersection(pod.uid for pod in ended))))
    return _add_incidents(state._replace(pods=pods), incidents)


def note_scalings(group: Cluster, sets: Mapping[str, SetView], state: RunState, now: float) -> RunState:
    """Return `state` with the sets that others have scaled down: it must be known when their pods go."""
    scalings = dict(state.scalings)
    for role in group.roles.values():
        view, known = sets.get(role.name), scalings.get(role.name)
        if view is None or not view.scaled_by or view.replicas >= role.replicas:
            continue
        if known is None or (known.by, known.replicas) != (view.scaled_by, view.replicas) or _is_past(known, now):
            scalings[role.name] = Scaling(now, view.scaled_by, view.replicas)
    return state._replace(scalings=scalings) if scalings != state.scalings else state


def _word_scaling(pod: PodView, state: RunState, now: float) -> str:
    """Return that a pod was deleted since its set was scaled down, if it was."""
    known = state.scalings.get(pod.name.rpartition("-")[0])
    if known is None or _is_past(known, now) or pod.task.task_index < known.replicas:
        return ""
    return f"its StatefulSet was scaled to {known.replicas} by {known.by}"


def _is_past(scaling: Scaling, now: float) -> bool:
    return now > scaling.at + _SCALING_SECONDS


def note_preemptors(state: RunState, events: Sequence[Event]) -> RunState:
    """Return `state` with the pods that took the place of preempted ones, as far as Events tell."""
    preemptors = {event.uid: event.preemptor for event in events if event.preemptor}
    incidents = tuple(
        each._replace(error=f"{each.error}; {_PREEMPTOR}{preemptors[each.uid]}".lstrip("; "))
        if each.uid in preemptors and lacks_preemptor(each)
        else each
        for each in state.incidents
    )
    return state._replace(incidents=incidents) if incidents != tuple(state.incidents) else state


def lacks_preemptor(incident: Incident) -> bool:
    """Return whether a pod was preempted by a pod that is not known yet."""
    return incident.cause == pod_causes.PREEMPTED.name and _PREEMPTOR not in incident.error


def note_replacements(own: Sequence[PodView], state: RunState, now: float) -> RunState:
    """Return `state` with the pods that there are, and as incidents those that were replaced between two looks."""
    died = {task: deaths.uid for task, deaths in state.deaths.items()}
    incidents, pods = [], dict(state.pods)
    for pod in own:
        task, short = str(pod.task), pod.uid[:_UID_LENGTH]
        before = pods.get(task, "")
        if pod.is_deleting or before == short or task in state.succeeded:
            continue
        pods[task] = short
        if before and not died.get(task, "").startswith(before):
            words = "while no run controller was running; evicted, deleted or lost with its node"
            incidents.append(
                Incident(now, pod.name, pod.node, pod_causes.POD_DELETED.name, BY_SET, error=words, uid=pod.uid)
            )
    return _add_incidents(state._replace(pods=pods), incidents)


def note_failures(
    group: Cluster, own: Sequence[PodView], reports: Mapping[str, LauncherReport], state: RunState, now: float
) -> RunState:
    """Return `state` with the failures that launchers report, while they run or in termination messages.

    Where a peer's end is the reason, it is an incident only of the leading task: one death may end a thousand programs.
    """
    restarts: Dict[str, Deaths] = dict(state.restarts)
    counts: Dict[str, ReportedFailures] = dict(state.reported_failures)
    incidents: List[Incident] = []
    leader = deciding_tasks(group)[0]
    for pod in own:
        sources: List[Union[LauncherReport, Termination]] = [reports[pod.uid]] if pod.uid in reports else []
        sources += [end.termination for end in pod.ends if end.termination and end.termination.run_id == state.run_id]
        total = max((each.ended for each in sources), default=0)
        known = restarts.get(str(pod.task)) or Deaths(pod.uid, 0, 0)
        if known.uid != pod.uid:
            known = Deaths(pod.uid, known.total, 0)
        if total <= known.current:
            continue
        restarts[str(pod.task)] = known._replace(current=total)
        failures = {each.number: each for source in sources for each in source.failures}
        news = [failures[number] for number in sorted(failures) if number > known.current]
        reported = [each for each in news if pod.task == leader or not is_echo(each)]
        before = _resolve_count(counts.get(str(pod.task)), now)
        reported = reported[: FAILURES_KEPT - before.number]
        counts[str(pod.task)] = before._replace(number=before.number + len(reported))
        incidents += [
            Incident(
                at=_find_time(each.at, state, now),
                pod=pod.name,
                node=pod.node,
                cause=each.cause,
                action=_BY_LAUNCHER,
                exit_code=each.exit_code,
                error=each.error,
                uid=pod.uid,
            )
            for each in reported
        ]
    return _add_incidents(state._replace(restarts=restarts, reported_failures=counts), incidents)


def _resolve_count(before: Optional[ReportedFailures], now: float) -> ReportedFailures:
    """Return the count of a task for the current hour."""
    return before if before and before.since <= now < before.since + _BUDGET_SECONDS else ReportedFailures(now, 0)


def _find_time(told: float, state: RunState, now: float) -> float:
    """Return when a failure was, as its pod says; now where that cannot be: another time would hide other incidents."""
    begin = min(state.updated, now) - _CLOCK_LAG_SECONDS
    return told if begin <= told <= now + CLOCK_LEAD_SECONDS else now


def note_problems(group: Cluster, seen: Observation, own: Sequence[PodView], state: RunState) -> RunState:
    """Return `state` with what keeps pods from running now."""
    since = {(problem.subject, problem.cause): problem.since for problem in state.problems}
    found = []
    for task, problem in find_problems(group, seen, own, state.succeeded):
        name = group.pod_name(task)
        node = next((pod.node for pod in seen.pods if pod.task == task), "")
        begin = since.get((name, problem.cause), seen.now)
        found.append(PodProblem(name, node, problem.cause, problem.message, begin))
    explained = {each.subject for each in found}
    for task, problem, at in find_peer_problems(group, own, seen.reports, seen.now, state.progress):
        name, node = group.pod_name(task), next(pod.node for pod in own if pod.task == task)
        if name not in explained:
            begin = since.get((name, problem.cause), _find_time(at, state, seen.now))
            found.append(PodProblem(name, node, problem.cause, problem.message, begin))
    for task, problem in find_report_problems(own, seen.reports, state, seen.now):
        name, node = group.pod_name(task), next(pod.node for pod in own if pod.task == task)
        begin = since.get((name, problem.cause), seen.now)
        found.append(PodProblem(name, node, problem.cause, problem.message, begin))
    queued = find_queue_problem(seen.queue, state.phase == QUEUED)
    if queued is not None:
        name = f"queue {seen.queue.name}"
        found.insert(0, PodProblem(name, "", queued.cause, queued.message, since.get((name, queued.cause), seen.now)))
    for cause, subjects in ((pod_causes.CHANGE_REFUSED, seen.refused), (pod_causes.OBJECT_MISSING, seen.missing)):
        for name, words in subjects.items():
            found.insert(0, PodProblem(name, "", cause.name, words, since.get((name, cause.name), seen.now)))
    return state._replace(problems=tuple(found[:PROBLEMS_KEPT]))


def find_problems(
    group: Cluster, seen: Observation, own: Sequence[PodView], finished: Container[str] = ()
) -> List[Tuple[Task, Problem]]:
    """Return what keeps tasks of the group from running, as far as it is known."""
    # A pod of an earlier run that does not go keeps the place of this one's.
    pods = {pod.task: pod for pod in (*(pod for pod in seen.pods if pod.is_lost(seen.now)), *own)}
    found = []
    for task_type, role in group.roles.items():
        is_wanted = role.name in seen.sets and seen.sets[role.name].replicas > 0
        refusal = find_set_problem(role.name, seen.events)
        if role.name not in seen.sets:
            is_wanted, refusal = True, Problem(pod_causes.OBJECT_MISSING.name, f"its StatefulSet {role.name} is gone")
        for task in group.tasks(task_type):
            pod = pods.get(task)
            if pod is not None and tuple(pod.gates) == (QUEUE_GATE,):
                # What keeps the whole run in its queue says more.
                continue
            if pod is not None:
                problem = pod.problem
                if problem is None or problem.cause in CLAIM_CAUSES:
                    # With a node, a pod has its claims: what was said about them is past.
                    of_claim = None if pod.node else find_claim_problem(pod.claims, seen.events)
                    of_pod = find_pod_event(pod.name, seen.events, pod.uid, bool(pod.node), pod.last_start)
                    of_event = of_claim or of_pod
                    problem = (None if pod.is_running else of_event) or problem
            else:
                problem = refusal if is_wanted and str(task) not in finished else None
            if problem is None and pod is not None and pod.is_lost(seen.now):
                problem = Problem(pod_causes.POD_STUCK.name, "it was deleted long ago")
            if problem is not None:
                found.append((task, problem))
    return found


def find_missing(group: Cluster, own: Sequence[PodView]) -> List[Task]:
    """Return the tasks that have no pod which runs, or has run and is about to run again."""
    started = {
        pod.task for pod in own if not pod.is_deleting and (pod.is_running or (_has_run(pod) and not pod.is_held))
    }
    return [task for task_type in group.roles for task in group.tasks(task_type) if task not in started]


def _has_run(pod: PodView) -> bool:
    """Say whether a container of the pod was ever started: one whose program does not exist only ends."""
    return any(end.reason not in _NOT_STARTABLE for end in pod.ends)


def name_death(end: ContainerEnd) -> Cause:
    """Return the cause of a container's end about which no launcher left a word."""
    if end.reason == "OOMKilled":
        return causes.OUT_OF_MEMORY
    was_told = end.termination is not None and end.termination.cause == causes.TERMINATED.name
    if end.failed_hook or end.exit_code == _ON_SIGTERM or was_told:
        return causes.PROBE_FAILED
    if "exec format error" in end.detail:
        return causes.WRONG_ARCHITECTURE
    if end.reason in _NOT_STARTABLE:
        return name_start_cause(end.detail, causes.PROGRAM_MISSING)
    if "launcher.pyz': [Errno 2]" in end.detail:
        return causes.LAUNCHER_MISSING
    return causes.KILLED if end.exit_code > 128 else causes.CONTAINER_DIED


def is_given_up(max_restarts: int, pod: PodView, deaths: int) -> bool:
    """Say whether a container has died too often to be started again."""
    limit = max_restarts
    if pod.ends and name_death(pod.ends[0]) is causes.OUT_OF_MEMORY:
        limit = min(limit, OOM_RESTARTS)
    return deaths > limit


def is_taken_away(pod: PodView) -> bool:
    """Say whether the cluster takes the pod away: then its end is not the program's failure."""
    cause = causes.CAUSES.get(pod.problem.cause) if pod.problem else None
    return pod.is_deleting or (cause is not None and cause.restart == pod_causes.POD_DELETED.restart)


def count_deaths(pod: PodView) -> int:
    """Return how often the container has died and its launcher had not given up; 0 where its newest end is another."""
    if not pod.ends or not _is_death(pod.ends[0]):
        return 0
    return pod.deaths - sum(not _is_death(end) for end in pod.ends)


def word_death(end: ContainerEnd) -> str:
    """Return what is known about a container's death."""
    if end.failed_hook:
        return f"the kubelet stopped the container, because its postStart hook failed: {end.failed_hook}"
    if end.termination or end.exit_code == _ON_SIGTERM:
        return "the kubelet stopped the container, but not its pod"
    return end.detail or end.reason


def _is_death(end: ContainerEnd) -> bool:
    """Say whether a container died silently, or was told to stop, as by the kubelet for a failed probe."""
    words = end.termination
    return not end.succeeded and (words is None or words.cause == causes.TERMINATED.name)


def _word_death(plan: RunPlan, pod: PodView, total: int, now: float) -> Incident:
    end = pod.ends[0]
    return Incident(
        at=end.finished_at or now,
        pod=pod.name,
        node=pod.node,
        cause=name_death(end).name,
        action=GIVEN_UP if is_given_up(plan.max_restarts, pod, total) else _BY_KUBELET,
        exit_code=end.exit_code,
        error=word_death(end),
        uid=pod.uid,
    )


def _add_incidents(state: RunState, new: Sequence[Incident]) -> RunState:
    if not new:
        return state
    # The one that was told of last may have been first.
    incidents = sorted([*state.incidents, *new], key=lambda incident: incident.at)
    if len(incidents) > INCIDENTS_KEPT:
        incidents = [incidents[0], *incidents[1 - INCIDENTS_KEPT :]]
    return state._replace(incidents=tuple(incidents))
