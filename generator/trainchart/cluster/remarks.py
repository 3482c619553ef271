"""Says what does not fit together in a training: of its record, its objects, its run controller and its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.cluster.autoscalers import describe_autoscalers
from trainchart.cluster.builds import find_mixed_builds
from trainchart.cluster.controller_logs import describe_troubles
from trainchart.cluster.departures import find_departures
from trainchart.cluster.idle_kubernetes import find_idle_kubernetes
from trainchart.cluster.objects import Controller, RoleSet, TrainingPod, as_cluster
from trainchart.cluster.oddities import find_oddities
from trainchart.cluster.one_node_claims import find_one_node_claims
from trainchart.cluster.outside_changes import describe_scalers
from trainchart.cluster.record import Record
from trainchart.cluster.snapshot import Snapshot, Unreadable, label, listed
from trainchart.cluster.stalls import find_stalls
from trainchart.reports.report import FROM_RECORD, NO_CONTROLLER, Report, ReportedProblem
from trainchart.reports.text import describe_time
from trainchart_runtime.cluster import deciding_tasks
from trainchart_runtime.contract import KUEUE_LABEL
from trainchart_runtime.pod_causes import CHANGE_REFUSED, UNSCHEDULABLE
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import ENDED_PHASES, NOTICE_SENT, RUNNING, STARTING, STOPPING, VERDICTS, RunState

_STOP_SECONDS = 120.0
"""A run controller scales the roles to zero one after the other, as soon as the run is over."""
_UNHEARD_SECONDS = 60.0
"""A run controller that has not recorded a success for so long cannot."""


def is_earlier(state: RunState, sets: Sequence[RoleSet]) -> bool:
    """Say whether the pods are to be of another run than the one that the record is about."""
    return bool(sets) and all(each.run_id != state.run_id for each in sets)


def find_remarks(
    report: Report,
    seen: Snapshot,
    record: Record,
    sets: Sequence[RoleSet],
    pods: Sequence[TrainingPod],
    controller: Controller,
) -> list[str]:
    """Return what does not fit together, worst first."""
    remarks = find_idle_kubernetes(report, seen, sets)
    remarks += [record.error] if record.error else []
    has_job = controller.state not in ("", "missing", NO_CONTROLLER)
    if has_job and not record.name and not record.error and not isinstance(seen.records, Unreadable):
        back = (
            "its run controller writes it again within a minute"
            if controller.state == "running"
            else f"{describe_rollback(report)} recreates it empty"
        )
        remarks.append(f"its record was deleted; {back}")
    if record.state is not None and is_earlier(record.state, sets):
        remarks.append(
            f"the record is still that of the previous run, {record.state.run_id!r} ({record.state.phase}): "
            "the run controller has not started this one yet"
        )
    if not sets and not isinstance(seen.sets, Unreadable):
        remarks.append(
            "its StatefulSets no longer exist: the release is partly deleted; helm uninstall removes the rest"
        )
    remarks += find_mixed_builds(report, seen)
    remarks += _find_foreign_queue(seen)
    if any(each.is_deleting for each in sets):
        remarks.append("it is being deleted")
    remarks += _find_idle_controller(report, seen, record, sets, pods, controller)
    if report.phase in VERDICTS and controller.state == NO_CONTROLLER:
        remarks.append("no run controller supervises it: its pods keep what they hold until helm uninstall")
    elif report.phase in ENDED_PHASES and report.pods and report.source == FROM_RECORD:
        remarks.append(f"the record says {report.phase}, but {len(report.pods)} of its pods are still there")
    remarks += _find_late_stop(report, pods)
    remarks += _find_lost_notice(record, report.now)
    scalers = [*describe_autoscalers(report, seen, sets), *describe_scalers(listed(seen.sets))]
    remarks += scalers
    remarks += find_oddities(report, seen, record, sets, is_scaled=bool(scalers))
    remarks += find_stalls(report, seen, {pod.view.name for pod in pods if not pod.view.node})
    remarks += find_one_node_claims(report, seen)
    homeless = {each.subject for each in report.problems if _lacks_room(each)}
    waiting = homeless - {controller.subject}
    running = sum(pod.view.is_running for pod in pods)
    if waiting and running and report.phase == STARTING:
        holding = f"{running} of its pods {'holds its' if running == 1 else 'hold their'} place"
        remarks.append(
            f"{holding} while {len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for room, and it trains only "
            "with all of them: if several releases do so, each waits for the others until one gives up; a queue "
            "that starts all pods of a release or none prevents that (see queues and gangs in the documentation)"
        )
    return [*remarks, *find_departures(report, seen)]


def _lacks_room(problem: ReportedProblem) -> bool:
    """Say whether a pod waits for what others hold; a quota says nothing of other releases that wait."""
    return problem.cause == UNSCHEDULABLE.name


def _find_foreign_queue(seen: Snapshot) -> Iterator[str]:
    """Yield that Kueue has put the sets into a queue of its own accord: charts refuse that label."""
    queues = {label(each, KUEUE_LABEL) for each in listed(seen.sets)} - {""}
    if queues and listed(seen.jobs):
        yield (
            f"Kueue queues each of its StatefulSets separately, in queue {list_names(sorted(queues))}: its pods may "
            "not start together. A LocalQueue named default queues everything in its namespace: ask its "
            "administrators to rename it, and set run.queue to the new name"
        )


def _find_lost_notice(record: Record, now: float) -> Iterator[str]:
    """Yield that the message of run.notify about the last phase could not be sent, and why."""
    notice = record.state.notice if record.state else None
    if (
        notice is None
        or notice.outcome == NOTICE_SENT
        or (not notice.outcome and now < notice.since + _UNHEARD_SECONDS)
    ):
        return
    why = notice.outcome or "the run controller ended while it sent the message"
    yield f"the message of run.notify about {notice.phase} may not have arrived: {why}"


def _find_late_stop(report: Report, pods: Sequence[TrainingPod]) -> Iterator[str]:
    """Yield which pods stay though the run is over for long, and nothing has told them to go."""
    staying = [pod.view.name for pod in pods if not pod.view.is_deleting]
    refused = any(each.cause == CHANGE_REFUSED.name for each in report.problems)
    if report.phase == STOPPING and staying and not refused and report.now >= report.since + _STOP_SECONDS:
        yield (
            f"the run is over, but {list_names(staying)} is still there and keeps what it holds: its StatefulSet was "
            "not scaled to zero. The log of the run controller (kubectl logs, its Job's pod) says why"
        )


def _find_idle_controller(
    report: Report,
    seen: Snapshot,
    record: Record,
    sets: Sequence[RoleSet],
    pods: Sequence[TrainingPod],
    controller: Controller,
) -> Iterator[str]:
    """Yield that the run controller does not act, and what it would have done."""
    place = f"-n {report.key.namespace}"
    if report.phase in ENDED_PHASES:
        return
    if controller.state == "missing":
        yield "its run controller no longer exists: nothing ends or restarts this run until the next helm upgrade"
    elif controller.state == "finished" and report.phase != STOPPING and report.source == FROM_RECORD:
        yield (
            "its run controller has ended, though the run has not, so nothing restarts or ends this run: most likely "
            "an upgrade had replaced it, and was rolled back more than an hour later. Have its Job created again: "
            f"kubectl delete job {controller.job} {place}, then helm rollback {report.key.release} REVISION {place}, "
            f"with the newest revision of helm history {report.key.release} {place}"
        )
    elif controller.state == "failed" and report.phase != STOPPING and not isinstance(seen.records, Unreadable):
        yield f"its run controller has given up, so nothing ends this run: {controller.problem}"
    elif controller.state == "held":
        yield (
            f"its run controller is held back: {controller.problem}; nothing starts, restarts or ends this run, "
            f"and its pods keep what they hold. Release it (kubectl edit job {controller.job} {place}, or in the queue "
            f"that holds it), or end the run: helm uninstall {report.key.release} {place}"
        )
    elif controller.state == "starting" and controller.problem:
        words = "" if controller.cause else f": {controller.problem}"
        as_of = f"; phase and step are as of {describe_time(record.state.updated)}" if record.state else ""
        yield f"its run controller is not running, so nothing starts, restarts or ends this run{as_of}{words}"
        unasked = [name for each in sets for name in each.unasked_pods] if report.phase == STARTING else []
        if unasked:
            verb = "has" if len(unasked) == 1 else "have"
            yield f"{list_names(unasked)} {verb} not been requested yet: the run controller does that when it runs"
    troubles = list(describe_troubles(seen.controller_lines)) if controller.state == "running" else []
    yield from troubles
    if controller.state not in ("", "finished") and report.source == FROM_RECORD:
        yield from _find_unheard(report, sets, pods, controller, is_explained=bool(troubles))


def _find_unheard(
    report: Report, sets: Sequence[RoleSet], pods: Sequence[TrainingPod], controller: Controller, *, is_explained: bool
) -> Iterator[str]:
    """Yield what the run controller should have recorded long ago, if it could."""
    leader = deciding_tasks(as_cluster(sets))[:1]
    ends = [end for pod in pods if pod.view.task in leader for end in pod.view.ends if end.succeeded]
    last = max(ends, key=lambda end: end.finished_at, default=None)
    is_expected = report.phase in (STARTING, RUNNING)
    if last is None or not is_expected or report.now < last.finished_at + _UNHEARD_SECONDS:
        return
    step = f"step {last.termination.step}, " if last.termination and last.termination.step is not None else ""
    end = f"{step}{describe_time(last.finished_at)}"
    words = f"{leader[0]} has succeeded, but the record does not say so ({end})"
    if controller.state != "running":
        yield (
            f"{words}: the program has finished, and only the verdict is missing; its run controller records it when "
            "it runs"
        )
        return
    if is_explained:
        yield f"{words}: the program has finished, and its run controller records it once the problem above is resolved"
        return
    place = f"-n {report.key.namespace}"
    yield (
        f"{words}: its run controller cannot act. kubectl logs "
        f"job/{controller.job} {place} says why; if a request was forbidden, its Role or RoleBinding was changed: "
        f"{describe_rollback(report)} restores it"
    )


def describe_rollback(report: Report) -> str:
    """Return how the objects of the release are made as its newest revision has them."""
    release, place = report.key.release, f"-n {report.key.namespace}"
    return (
        f"helm rollback {release} REVISION {place} (REVISION: the newest one of helm history {release} {place}; "
        "Helm 4: with --force-conflicts)"
    )
