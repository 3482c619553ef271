"""The use case `trainchart compare`: reads the reports of several runs, here and on a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from trainchart.actions.status import open_run
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.run_lookup import RunAddress
from trainchart.errors import NotFound, Problem, ToolError, TrainchartError, UsageError
from trainchart.local.io.release_folder import RUN_FILE
from trainchart.local.io.run_report import read_report
from trainchart.reports.report import LOCAL, Report


def read_reports(names: Sequence[str], place: Place, runs_folder: Path) -> list[Report]:
    """Return the report of each run, in the order of their names; a name may be the folder of a local run.

    Raises:
        UsageError: fewer than two names, an empty one, or two of one run.
        TrainchartError: there is no such run, or it cannot be read; one error tells of all such names.
    """
    if len(names) < 2:
        raise UsageError("compare needs at least two runs", hint="see: trainchart list")
    if "" in names:
        raise UsageError("the name of a run is empty", hint="is a variable unset?")
    reports, refused = [], []
    for name in names:
        try:
            reports.append(_read_report(name, place, runs_folder))
        except (NotFound, ToolError) as error:
            refused.append(error)
    if refused:
        raise _join(refused)
    _refuse_doubles(names, reports)
    return reports


def _read_report(name: str, place: Place, runs_folder: Path) -> Report:
    folder = Path(os.path.realpath(name))
    # Unlike Path.is_file, this takes a name of any length.
    if "/" in name and os.path.isfile(folder / RUN_FILE):  # noqa: PTH113
        return read_report(folder)
    return open_run(RunAddress(name, place, runs_folder))()


def _join(errors: Sequence[TrainchartError]) -> TrainchartError:
    """Return one error for all: that of the first, which tells of the others as well."""
    first, others = errors[0], errors[1:]
    first.problems += tuple(Problem(each.message, hint=each.hint) for each in others)
    return first


def _refuse_doubles(names: Sequence[str], reports: Sequence[Report]) -> None:
    known: dict[tuple[str, ...], str] = {}
    for name, report in zip(names, reports, strict=True):
        run = (LOCAL, os.path.realpath(report.folder)) if report.origin == LOCAL else (report.origin, *report.key)
        if run in known:
            words = (
                f"{name!r} is given twice" if known[run] == name else f"{known[run]!r} and {name!r} are the same run"
            )
            raise UsageError(words, hint="give each run once")
        known[run] = name
