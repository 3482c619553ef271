"""What the page of several runs shows beside each other, as plain data. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from trainchart.console.addresses import address_of
from trainchart.console.list_page import describe_staleness
from trainchart.console.offers import name_run
from trainchart.console.phases import tone_of
from trainchart.console.views import RunView, refer_to
from trainchart.reports.comparison import Cell, Row, compare_reports, name_runs
from trainchart.reports.comparison_text import describe_cell
from trainchart.reports.report import LOCAL, Report
from trainchart_runtime.run.state import FAILED

RUNS_COMPARED = 24


@dataclass(frozen=True)
class ComparedRow:
    """One setting or result."""

    name: str
    better: str
    cells: Sequence[tuple[str, str]]
    """Text and kind: best, bad or empty."""


@dataclass(frozen=True)
class ComparePage:
    """Several runs."""

    runs: Sequence[tuple[str, str, str, str]]
    """Title, address, phase and its tone."""
    sections: Sequence[tuple[str, Sequence[ComparedRow]]]
    same: Sequence[ComparedRow]
    """Settings in which no two runs are known to differ."""
    stale: Sequence[str]
    command: str
    """Empty where no one command names all of the runs."""


def describe_comparison(views: Sequence[RunView], context: str = "") -> ComparePage:
    """Return the page of runs that were all read; `context` is what the console was given of the kubeconfig's."""
    reports = list_reports(views)
    comparison = compare_reports(reports)
    differing = [row for row in comparison.settings if row.differs]
    sections = [("Settings that differ", differing), ("Results", comparison.results), ("Metrics", comparison.metrics)]
    return ComparePage(
        runs=[
            (title, address_of(refer_to(report)), report.phase, tone_of(report.phase))
            for title, report in zip(name_runs(reports), reports, strict=True)
        ],
        sections=[(title, [_describe(row) for row in rows]) for title, rows in sections if rows],
        same=[_describe(row) for row in comparison.settings if not row.differs],
        stale=[describe_staleness(view.error, view.read_at) for view in views if view.error],
        command=_find_command(reports, context),
    )


def _find_command(reports: Sequence[Report], context: str) -> str:
    # The name of a local run may hold anything.
    names = [shlex.quote(each.key.release) if each.origin == LOCAL else each.key.release for each in reports]
    places = {name_run(each, context).removeprefix(name) for each, name in zip(reports, names, strict=True)}
    return f"trainchart compare {' '.join(names)}{places.pop()}" if len(places) == 1 else ""


def list_reports(views: Sequence[RunView]) -> list[Report]:
    """Return the reports of runs that were read."""
    return [view.report for view in views if view.report is not None]


def _describe(row: Row) -> ComparedRow:
    return ComparedRow(row.name, row.better, [(describe_cell(cell, row.unit), _kind(cell)) for cell in row.cells])


def _kind(cell: Cell) -> str:
    return "best" if cell.is_best else "bad" if cell.value == FAILED else ""
