"""Concludes from one look what a training does: from the controller's record where there is one, else from its pods.

Pure, and never a guess: what contradicts the record is remarked, and what could not be seen is a gap, not an absence.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from trainchart.cluster.log_lines import describe_gaps, find_warnings, name_pods
from trainchart.cluster.objects import (
    Controller,
    RoleSet,
    TrainingPod,
    as_cluster,
    find_controller,
    parse_set,
    parse_training_pod,
)
from trainchart.cluster.outside_changes import find_outside_changes
from trainchart.cluster.pace import find_pace, find_slowdown
from trainchart.cluster.pod_leads import find_leads
from trainchart.cluster.record import Record, read_record
from trainchart.cluster.remarks import find_remarks, is_earlier
from trainchart.cluster.settings import find_settings
from trainchart.cluster.snapshot import (
    Object,
    Objects,
    Snapshot,
    Unreadable,
    is_training_pod,
    listed,
    name_of,
    section,
)
from trainchart.reports.report import (
    FROM_PODS,
    FROM_RECORD,
    NO_CONTROLLER,
    NOT_RUNNING,
    UNKNOWN,
    PodReport,
    Progress,
    Report,
    ReportedProblem,
    RoleReport,
    TrainingKey,
)
from trainchart_runtime.causes import PEER_LOST, PEER_MISSING, PEER_UNRESOLVABLE
from trainchart_runtime.cluster import CHIEF, WORKER, Cluster, deciding_tasks
from trainchart_runtime.pod_causes import CHANGE_REFUSED, OBJECT_MISSING, QUEUE_CLOSED, QUEUE_UNUSABLE, QUEUED
from trainchart_runtime.pod_problems import parse_event
from trainchart_runtime.run.observation import PodView
from trainchart_runtime.run.problems import name_death
from trainchart_runtime.run.state import (
    ENDED_PHASES,
    FAILED,
    PROBLEMS_KEPT,
    RUNNING,
    STARTING,
    Incident,
    RunState,
    Verdict,
)
from trainchart_runtime.run.verdict import explain_failure, explain_success, find_failures
from trainchart_runtime.running_causes import RUNNING_CAUSES

_DAMAGED_SHOWN = 5
_TOLD_BY_LAUNCHERS = tuple(cause.name for cause in (PEER_LOST, PEER_MISSING, PEER_UNRESOLVABLE, *RUNNING_CAUSES))
"""Problems of pods that run, which the run controller's record alone knows."""

_TOLD_BY_CONTROLLER = tuple(
    cause.name for cause in (OBJECT_MISSING, CHANGE_REFUSED, QUEUE_UNUSABLE, QUEUE_CLOSED, QUEUED)
)
"""Problems of no pod, which the record alone knows."""


def diagnose(key: TrainingKey, seen: Snapshot) -> Report:
    """Return what is known about the training `key`, of which `seen` shows nothing but its own."""
    events = [parse_event(event) for event in _current_events(seen)]
    sets = sorted((parse_set(each, events) for each in listed(seen.sets)), key=lambda each: _rank(each.role))
    cluster = as_cluster(sets)
    found = (parse_training_pod(cluster, pod, events) for pod in listed(seen.pods) if is_training_pod(pod))
    # Any user may give a pod the name and the labels of a training pod; the run controller ignores such pods too.
    owners = {(each.name, each.uid) for each in sets}
    own = (pod for pod in found if pod and (pod.view.name.rpartition("-")[0], pod.view.owner_uid) in owners)
    pods = sorted(own, key=lambda pod: (_rank(pod.view.task.task_type), pod.view.task))
    record = read_record(seen.records)
    controller = _find_controller(seen, record, find_controller(listed(seen.jobs), listed(seen.pods), events))
    if record.state is not None and is_earlier(record.state, sets):
        # A record that says how the run before has ended says nothing about this one.
        report = Report(key=key, now=seen.now, phase=STARTING, source=FROM_RECORD, run_id=_run_id(sets))
    elif record.state is not None:
        report = _from_record(key, seen.now, record.state, [pod.started for pod in pods])
    else:
        report = _from_pods(key, seen, sets, cluster, pods)
    return _complete(report, seen, record, sets, pods, controller)


def wants_events(report: Report) -> bool:
    """Say whether only Events can tell why something of a training is not there."""
    is_whole = all(role.running is None or role.running + role.finished >= role.wanted for role in report.roles)
    return not report.is_over and (report.controller == "starting" or not is_whole)


def _current_events(seen: Snapshot) -> list[Object]:
    """Return the events without those of pods that had the same name before."""
    present = {name_of(pod): section(pod, "metadata").get("uid") for pod in listed(seen.pods)}

    def is_current(event: Object) -> bool:
        about = section(event, "involvedObject")
        known, uid = present.get(str(about.get("name"))), about.get("uid")
        return about.get("kind") != "Pod" or not known or not uid or known == uid

    return [event for event in listed(seen.events) if is_current(event)]


def _rank(role: str) -> tuple[bool, bool, str]:
    return (role != CHIEF, role != WORKER, role)


def _find_controller(seen: Snapshot, record: Record, controller: Controller) -> Controller:
    """Return the controller, with `none` for a release without one and an empty state where it cannot be known."""
    if controller.state != "missing":
        return controller
    if isinstance(seen.jobs, Unreadable) or isinstance(seen.records, Unreadable):
        return Controller("")
    return controller if record.name else Controller(NO_CONTROLLER)


def _from_record(key: TrainingKey, now: float, state: RunState, starts: Sequence[float]) -> Report:
    verdict, last = state.verdict or state.pending_verdict, state.progress
    progress = (
        Progress(last.step, last.examples_per_second, last.metrics, last.at, last.fruitless_restarts, last.before)
        if last
        else Progress()
    )
    # The launcher's last words are newer than what it was asked before.
    if verdict is not None and (progress.step is None or verdict.step is not None):
        progress = Progress(verdict.step, progress.examples_per_second, verdict.metrics or progress.metrics, verdict.at)
    progress = replace(progress, first_at=state.first_step_at)
    return Report(
        key=key,
        now=now,
        phase=state.phase,
        source=FROM_RECORD,
        since=state.since,
        run_id=state.run_id,
        attempt=state.attempt,
        progress=progress,
        outcome=state.verdict,
        roles=tuple(
            RoleReport(role, numbers.wanted, numbers.running, numbers.failures, finished=numbers.finished)
            for role, numbers in sorted(state.roles.items(), key=lambda item: _rank(item[0]))
        ),
        problems=tuple(
            ReportedProblem(each.subject, each.cause, each.message, each.node, each.since) for each in state.problems
        ),
        finished=dict(state.succeeded),
        final_lines=dict(state.final_lines),
        incidents=tuple(state.incidents),
        setbacks=tuple(state.setbacks),
        history=tuple(state.history),
        seconds_per_step=find_pace(state, starts),
        slowdown=find_slowdown(state, starts),
    )


def _from_pods(
    key: TrainingKey, seen: Snapshot, sets: Sequence[RoleSet], cluster: Cluster, pods: Sequence[TrainingPod]
) -> Report:
    report = Report(key=key, now=seen.now, phase=UNKNOWN, source=FROM_PODS, run_id=_run_id(sets))
    if isinstance(seen.pods, Unreadable) or isinstance(seen.sets, Unreadable) or not sets:
        return report
    views = [pod.view for pod in pods]
    deciding = deciding_tasks(cluster)
    leaders = [view for view in views if view.task in deciding]
    if deciding and len(leaders) == len(deciding) and all(map(_has_succeeded, leaders)):
        outcome = explain_success(leaders, seen.now)
        ends = [end.finished_at for view in leaders for end in view.ends if end.succeeded]
        return _ended(report, outcome, max(ends))
    failures = find_failures(views, report.run_id, max(each.max_restarts for each in sets))
    verdict = explain_failure(views, failures, seen.now)
    if verdict is not None:
        return _ended(report, verdict, failures[verdict.pod].finished_at)
    if not pods and not any(each.requested for each in sets):
        # With a record, this is what every run that is over looks like.
        return report if isinstance(seen.records, Unreadable) else replace(report, phase=NOT_RUNNING)
    running = [pod for pod in pods if pod.view.is_running and not pod.view.is_deleting]
    is_whole = len(running) == sum(each.wanted for each in sets)
    times = [pod.started for pod in running] if is_whole else [pod.created for pod in pods]
    since = (max if is_whole else min)(times, default=min(each.created for each in sets))
    return replace(report, phase=RUNNING if is_whole else STARTING, since=since)


def _has_succeeded(view: PodView) -> bool:
    return any(end.succeeded for end in view.ends)


def _run_id(sets: Sequence[RoleSet]) -> str:
    return next((each.run_id for each in sets if each.run_id), "")


def _ended(report: Report, outcome: Verdict, at: float) -> Report:
    progress = Progress(outcome.step, None, outcome.metrics, at)
    return replace(report, phase=outcome.result, outcome=outcome._replace(at=at), since=at, progress=progress)


def _complete(
    report: Report,
    seen: Snapshot,
    record: Record,
    sets: Sequence[RoleSet],
    pods: Sequence[TrainingPod],
    controller: Controller,
) -> Report:
    """Return the report with what the objects show now, whatever said the phase."""
    report = replace(
        report,
        chart=next((each.chart for each in sets), ""),
        settings=find_settings(seen),
        controller=controller.state,
        gives_up_at=_find_start_deadline(report, record.state, sets, controller),
        unknown=(*list_unknown(seen.sets, seen.pods, seen.records, seen.jobs, seen.events), *_list_damaged(seen)),
        outside_changes=tuple(change for each in listed(seen.sets) for change in find_outside_changes(each)),
    )
    if not isinstance(seen.pods, Unreadable):
        report = replace(
            report,
            pods=tuple(_as_report(pod, record.state) for pod in pods),
            incidents=report.incidents or _find_incidents(pods),
        )
        if sets:
            roles = tuple(_count(each, pods, report.roles) for each in sets if each.wanted or each.requested)
            report = replace(report, roles=roles, problems=_find_all_problems(report, sets, pods, controller))
    elif not report.roles:
        report = replace(report, roles=tuple(RoleReport(each.role, each.wanted, None, 0, each.name) for each in sets))
    if report.outcome is not None and report.outcome.result == FAILED and report.is_over and record.state is not None:
        labels = name_pods(report)
        report = replace(
            report,
            warnings=tuple(find_warnings(record.logs, report, labels)),
            log_gaps=tuple(describe_gaps(record.logs, labels)),
        )
    remarks = find_remarks(report, seen, record, sets, pods, controller)
    return replace(report, remarks=tuple(remarks), leads=find_leads(report, seen))


def _find_start_deadline(
    report: Report, state: RunState | None, sets: Sequence[RoleSet], controller: Controller
) -> float:
    """Return when the run controller ends a run whose pods are not all there; 0 where it does not."""
    seconds = max((each.start_deadline for each in sets), default=0)
    if state is None or not seconds or controller.state != "running":
        return 0.0
    since = {STARTING: report.since, RUNNING: state.missing_since}.get(report.phase)
    return since + seconds if since else 0.0


def _count(role: RoleSet, pods: Sequence[TrainingPod], known: Sequence[RoleReport]) -> RoleReport:
    own = [pod.view for pod in pods if pod.view.task.task_type == role.role]
    parked = [view for view in own if view.ends and view.ends[0].succeeded]
    running = sum(view.is_running and not view.is_deleting and view not in parked for view in own)
    finished = max((each.finished for each in known if each.role == role.role), default=0)
    # A recreated pod has forgotten its failures; the record has not.
    recorded = max((each.failures for each in known if each.role == role.role), default=0)
    failures = sum(max(0, view.deaths - sum(end.succeeded for end in view.ends)) for view in own)
    numbers = max(recorded, failures), role.name, max(finished, len(parked))
    return RoleReport(role.role, role.wanted, running, *numbers)


def _find_all_problems(
    report: Report, sets: Sequence[RoleSet], pods: Sequence[TrainingPod], controller: Controller
) -> tuple[ReportedProblem, ...]:
    """Return what is wrong now, what keeps others from being put right first, each with since when it is known."""
    kept = [each for each in report.problems if each.cause in _TOLD_BY_CONTROLLER]
    if report.phase in ENDED_PHASES:
        return tuple(kept)
    if controller.cause:
        kept.insert(0, ReportedProblem(controller.subject, controller.cause, controller.problem))
    running = {pod.view.name for pod in pods if pod.view.is_running} if controller.state == "running" else ()
    told = [each for each in report.problems if each.cause in _TOLD_BY_LAUNCHERS and each.subject in running]
    since = {(each.subject, each.cause): each.since for each in report.problems}
    found = (
        replace(each, since=since.get((each.subject, each.cause), each.since)) for each in _find_problems(sets, pods)
    )
    return (*kept, *found, *told)


def _find_problems(sets: Sequence[RoleSet], pods: Sequence[TrainingPod]) -> tuple[ReportedProblem, ...]:
    present = {pod.view.name for pod in pods}
    # The event of a refusal stays for an hour; it matters only for pods that are missing.
    refused = (
        ReportedProblem(name, each.problem.cause, each.problem.message)
        for each in sets
        if each.problem is not None
        for name in (f"{each.name}-{ordinal}" for ordinal in range(each.requested))
        if name not in present
    )
    of_sets = tuple(itertools.islice(refused, PROBLEMS_KEPT))
    of_pods = [
        ReportedProblem(
            pod.view.name,
            pod.problem.cause,
            pod.problem.message,
            pod.view.node,
            # One with a node may have run for long before.
            0.0 if pod.view.node else pod.created,
        )
        for pod in pods
        if pod.problem is not None
    ]
    return (*of_sets, *of_pods)


def _find_incidents(pods: Sequence[TrainingPod]) -> tuple[Incident, ...]:
    """Return the deaths that Kubernetes still remembers, for a training that no controller keeps a record of."""
    found = [
        Incident(
            at=end.termination.finished_at if end.termination else end.finished_at,
            pod=pod.view.name,
            cause=end.termination.cause if end.termination else name_death(end).name,
            node=pod.view.node,
            action="",
            exit_code=end.exit_code,
            error=end.termination.error if end.termination else end.detail,
        )
        for pod in pods
        for end in pod.view.ends
        if not end.succeeded
    ]
    return tuple(sorted(found, key=lambda incident: (incident.at, incident.pod)))


def _as_report(pod: TrainingPod, state: RunState | None) -> PodReport:
    view = pod.view
    known = state.restarts.get(str(view.task)) if state else None
    last = view.ends[0] if view.ends else None
    words = (
        ""
        if last is None
        else "succeeded"
        if last.succeeded
        else f"{last.termination.cause if last.termination else name_death(last).name} ({last.exit_code})"
    )
    return PodReport(
        name=view.name,
        label=str(view.task),
        role=view.task.task_type,
        state=pod.state,
        node=view.node,
        restarts=view.restarts,
        created=pod.created,
        gpus=pod.gpus,
        holds_gpus=pod.holds_gpus,
        placed=pod.placed,
        started=pod.started,
        last_end=words,
        program_restarts=known.current if known and known.uid == view.uid else 0,
    )


def list_unknown(*every: Objects) -> list[str]:
    """Return which of the objects could not be listed, and why."""
    return [f"could not read {each.what} ({each.reason})" for each in every if isinstance(each, Unreadable)]


def _list_damaged(seen: Snapshot) -> list[str]:
    more = len(seen.damaged) - _DAMAGED_SHOWN
    rest = [f"left out {more} more damaged objects"] if more > 0 else []
    return [f"left out {each}" for each in seen.damaged[:_DAMAGED_SHOWN]] + rest
