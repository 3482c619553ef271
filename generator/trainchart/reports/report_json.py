"""Reports about trainings as JSON documents. Pure."""

from __future__ import annotations

from typing import Any

from trainchart.reports.hints import fill_in
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import OutsideChange, PodReport, QueueStanding, Report, ReportedProblem, RoleReport
from trainchart.reports.run_settings import describe_settings
from trainchart.reports.timing import find_seconds, find_start
from trainchart.reports.upgrade import Upgrade
from trainchart_runtime.records import dump_record


def describe_report(report: Report) -> dict[str, Any]:
    """Return the report as a JSON document; what is not known is null, times are Unix seconds."""
    return {
        "origin": report.origin,
        "namespace": report.key.namespace or None,
        "folder": report.folder or None,
        "release": report.key.release,
        "model": report.key.chart,
        "chart": report.chart,
        "phase": report.phase,
        "phaseFrom": report.source,
        "waitsForPods": report.waits_for_pods,
        "since": report.since or None,
        "givesUpAt": report.gives_up_at or None,
        "startedAt": find_start(report) or None,
        "seconds": find_seconds(report),
        "runId": report.run_id,
        "attempt": report.attempt,
        "controller": report.controller or None,
        "progress": {
            "step": report.progress.step,
            "examplesPerSecond": report.progress.examples_per_second,
            "metrics": dict(report.progress.metrics),
            "nanMetrics": list(report.progress.nan_metrics),
            "at": report.progress.at or None,
        },
        "gpus": report.gpus,
        "gpusSince": report.gpus_since or None,
        "queue": None if report.queue is None else _describe_queue(report.queue),
        "outcome": None if report.outcome is None else dump_record(report.outcome),
        "settings": describe_settings(report.settings),
        "roles": [_describe_role(role) for role in report.roles],
        "pods": None if report.pods is None else [_describe_pod(pod) for pod in report.pods],
        "problems": [_describe_problem(problem, report.address) for problem in report.problems],
        "finished": dict(report.finished),
        "finalLines": dict(report.final_lines),
        "incidents": [dump_record(incident) for incident in report.incidents],
        "setbacks": [dump_record(setback) for setback in report.setbacks],
        "history": [dump_record(entry) for entry in report.history],
        "outsideChanges": [_describe_change(change) for change in report.outside_changes],
        "upgrades": [_describe_upgrade(upgrade) for upgrade in report.upgrades],
        "lastLines": _describe_lines(report.last_lines),
        "waits": _describe_lines(report.waits),
        "busy": _describe_lines(report.busy),
        "warnings": _describe_lines(report.warnings),
        "logGaps": list(report.log_gaps),
        "remarks": list(report.remarks),
        "leads": list(report.leads),
        "blockade": report.blockade or None,
        "secondsPerStep": report.seconds_per_step or None,
        "slowdown": None if report.slowdown is None else dump_record(report.slowdown),
        "unknown": list(report.unknown),
        "record": dict(report.record) or None,
    }


def _describe_change(change: OutsideChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "name": change.name,
        "by": change.by,
        "at": change.at or None,
        "fields": list(change.fields),
        "isPartOfRelease": change.is_of_release,
    }


def _describe_upgrade(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "revision": upgrade.revision,
        "at": upgrade.at or None,
        "changes": list(upgrade.changes),
        "notGivenAgain": list(upgrade.dropped),
    }


def _describe_role(role: RoleReport) -> dict[str, Any]:
    return {
        "role": role.role,
        "wanted": role.wanted,
        "running": role.running,
        "finished": role.finished,
        "failures": role.failures,
    }


def _describe_lines(lines: tuple[LogLine, ...]) -> list[dict[str, Any]]:
    return [{"at": line.at or None, "pod": line.label, "text": line.text} for line in lines]


def _describe_queue(queue: QueueStanding) -> dict[str, Any]:
    return {
        "name": queue.name,
        "position": queue.position,
        "length": queue.length,
        "needs": dict(queue.needs),
        "free": None if queue.free is None else dict(queue.free),
    }


def _describe_pod(pod: PodReport) -> dict[str, Any]:
    return {
        "pod": pod.name,
        "label": pod.label,
        "role": pod.role,
        "state": pod.state,
        "node": pod.node,
        "restarts": pod.restarts,
        "programRestarts": pod.program_restarts,
        "created": pod.created,
        "gpus": dict(pod.gpus),
        "holdsGpus": pod.holds_gpus,
        "lastEnd": pod.last_end,
    }


def _describe_problem(problem: ReportedProblem, address: str) -> dict[str, Any]:
    return {
        "subject": problem.subject,
        "node": problem.node,
        "cause": problem.cause,
        "message": problem.message,
        "sentence": problem.sentence,
        "hint": fill_in(problem.hint, address, problem.subject, problem.node, message=problem.message),
        "since": problem.since or None,
    }
