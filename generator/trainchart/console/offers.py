"""What a user can do about a run on its page, each with the command that does the same. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from trainchart.reports.report import LOCAL, NO_CONTROLLER, Report
from trainchart_runtime.run.state import STOPPING, SUSPENDED

STOP, SUSPEND, RESUME, RERUN = "stop", "suspend", "resume", "rerun"
_EFFECTS = {
    STOP: "Its programs get SIGTERM. Programs that use the training library save first; others lose the steps since "
    "the last checkpoint, unless they handle SIGTERM.",
    SUSPEND: "Its programs get SIGTERM, and everything they hold is freed until the run is resumed.",
    RESUME: "It continues from its last checkpoint.",
    RERUN: "A new run of the release starts, from the last checkpoint if there is one.",
}
VERBS = tuple(_EFFECTS)


@dataclass(frozen=True)
class Offer:
    """One thing that can be done."""

    verb: str
    effect: str
    command: str


def name_run(report: Report, context: str) -> str:
    """Return the arguments with which every command finds the run; `context` is the one that the console was given."""
    is_elsewhere = context and report.origin != LOCAL
    return f"{report.address} --context {shlex.quote(context)}" if is_elsewhere else report.address


def list_offers(report: Report, context: str) -> list[Offer]:
    """Return what makes sense in the phase of a run; whether it is allowed is decided when it is done."""
    return [Offer(verb, _EFFECTS[verb], f"trainchart {verb} {name_run(report, context)}") for verb in _choose(report)]


def _choose(report: Report) -> tuple[str, ...]:
    if report.phase == STOPPING:
        return ()
    if report.origin == LOCAL:
        return () if report.is_over else (STOP,)
    if report.controller in ("", NO_CONTROLLER):
        return ()
    if report.is_over:
        return (RERUN,)
    return (RESUME, STOP) if report.phase == SUSPENDED else (SUSPEND, STOP)
