"""Decides what suspend, resume, stop and rerun change about a release, and when they are refused. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainchart.cluster.helm_record import HelmRelease
from trainchart.reports.report import FROM_RECORD, Report
from trainchart_runtime.run.plan import DESIRED_RUNNING, DESIRED_STOPPED, DESIRED_SUSPENDED
from trainchart_runtime.run.state import FAILED, STOPPING, SUSPENDED
from trainchart_training.saving.resume import NEVER


class Verb(enum.StrEnum):
    suspend = "suspend"
    resume = "resume"
    stop = "stop"
    rerun = "rerun"


LATEST = "latest"

DESIRED = {
    Verb.suspend: DESIRED_SUSPENDED,
    Verb.resume: DESIRED_RUNNING,
    Verb.stop: DESIRED_STOPPED,
    Verb.rerun: DESIRED_RUNNING,
}


@dataclass(frozen=True)
class Change:
    """What follows from a verb: values to set, or the reason why nothing is done."""

    sets: Mapping[str, str] = field(default_factory=dict)
    """Value → text."""
    done: str = ""
    """What there is to say where nothing has to change."""
    refusal: str = ""
    hint: str = ""


def decide_change(verb: Verb, report: Report, installed: HelmRelease, resume: str = LATEST) -> Change:
    """Return what `verb` changes about a training as it is now; `resume` is how a new run begins."""
    return _refuse_release(report, installed) or _refuse_run(verb, report) or _resolve(verb, report, installed, resume)


def _refuse_release(report: Report, installed: HelmRelease) -> Change | None:
    name, model = report.key.release, report.key.chart
    if installed.dependencies or installed.chart_name != model:
        return Change(
            refusal=f"{name} was installed as part of the umbrella chart {installed.chart_name}, whose subcharts Helm "
            "does not keep",
            hint=f"set {model}.run.desiredState, or for a new run {model}.run.id, with helm upgrade",
        )
    run = installed.values.get("run")
    if not isinstance(run, Mapping) or "desiredState" not in run:
        return Change(
            refusal=f"the chart of {name}, {report.chart}, is older than this command: it has no run.desiredState",
            hint="upgrade the release to a chart that was generated with this version of trainchart",
        )
    if not _has_controller(run):
        return Change(
            refusal=f"{name} has no run controller (run.controller.enabled=false), so nothing would act on it",
            hint="helm uninstall ends it; its checkpoints are kept if their claim is",
        )
    return None


def _refuse_run(verb: Verb, report: Report) -> Change | None:
    name = f"{report.key.release} -n {report.key.namespace}"
    if report.source != FROM_RECORD:
        words = "; ".join((*report.remarks, *report.unknown)) or "the run controller has not written its record yet"
        return Change(
            refusal=f"nothing was changed, because the state of the run is not known: {words}", hint="try again"
        )
    if verb is Verb.rerun and not report.is_over:
        return Change(refusal=f"the run is not over: {report.phase}", hint=f"end it first: trainchart stop {name}")
    if verb in (Verb.suspend, Verb.resume) and (report.is_over or report.phase == STOPPING):
        return Change(refusal=f"the run is over: {report.phase}", hint=f"a new run: trainchart rerun {name}")
    return None


def _resolve(verb: Verb, report: Report, installed: HelmRelease, resume: str) -> Change:
    run: Mapping[str, Any] = installed.values["run"]
    wanted, asked = DESIRED[verb], run.get("desiredState")
    if verb is Verb.rerun:
        return Change(
            sets=_ask_for_run(run, resume, report) | {"run.id": make_run_id(report.now), "run.desiredState": wanted}
        )
    if verb is Verb.stop and (report.is_over or report.phase == STOPPING):
        return Change(done=f"the run is already over: {report.phase}")
    if asked == wanted and (report.phase == SUSPENDED) == (wanted == DESIRED_SUSPENDED):
        return Change(done=f"it is already {report.phase}, and its values say {wanted}")
    return Change(sets={"run.desiredState": wanted})


def _ask_for_run(run: Mapping[str, Any], resume: str, report: Report) -> dict[str, str]:
    """Return how a new run begins: from the release's own checkpoints, or new."""
    # What the run before began from, it has copied. One that has failed without a step may never have done so.
    has_begun = report.phase != FAILED or report.progress.step is not None
    is_released = run.get("resumeRelease") and (has_begun or resume == NEVER)
    released = {"run.resumeRelease": ""} if is_released else {}
    return released if str(run.get("resume")) == resume else {**released, "run.resume": resume}


def make_run_id(now: float) -> str:
    """Return an id for a new run that sorts by time and tells people when it was asked for."""
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d-%H%M%S}"


def _has_controller(run: Mapping[str, Any]) -> bool:
    controller = run.get("controller")
    return isinstance(controller, Mapping) and controller.get("enabled") is True
