"""Puts reports into the table of `list`: one row each, with what matters most as a remark. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trainchart.name_order import natural_key
from trainchart.reports.deaths import find_repeated
from trainchart.reports.local_causes import NOTHING_DONE, RUN_KILLED
from trainchart.reports.phases import describe_phase, find_phase_start
from trainchart.reports.quotas import describe_refusal
from trainchart.reports.report import Report, ReportedProblem
from trainchart.reports.text import (
    clean_lines,
    describe_gpus,
    describe_seconds,
    describe_silence,
    describe_slowdown,
    describe_standing,
    make_table,
)
from trainchart_runtime.pod_causes import QUOTA_EXCEEDED
from trainchart_runtime.run.judge import list_names

_REMARK_LIMIT = 80
"""Characters of an error or a remark in the table of `list`; `why` shows all of it."""
_REMARKS_LIMIT = 120
"""Characters of several remarks there."""


def sort_key(report: Report) -> tuple[str, list[tuple[int, str]], str]:
    """Return what sorts trainings: by namespace, then by release, then by chart."""
    return report.key.namespace, natural_key(report.key.release), report.key.chart


class ListRow(NamedTuple):
    """One training in the table of `list`."""

    where: str
    release: str
    chart: str
    phase: str
    phase_for: str
    pods: str
    gpus_held: str
    held_for: str
    step: str
    remark: str


def list_lines(reports: Sequence[Report]) -> list[str]:
    """Return the table of several trainings: who holds what, since when, doing what."""
    headings = ("WHERE", "RELEASE", "CHART", "PHASE", "FOR", "PODS", "GPUS HELD", "HELD FOR", "STEP", "REMARK")
    return clean_lines(make_table(headings, [describe_row(report) for report in reports]))


def describe_row(report: Report) -> ListRow:
    """Return what `list` says of a training; a question mark stands for what is not known."""
    gpus, held, since = report.gpus, report.gpus_since, find_phase_start(report)
    return ListRow(
        report.place,
        report.key.release,
        report.chart or report.key.chart,
        describe_phase(report),
        describe_seconds(report.now - since) if since else "?",
        _count_pods(report),
        "?" if gpus is None else describe_gpus(gpus),
        describe_seconds(report.now - held) if held else "-",
        "-" if report.progress.step is None else str(report.progress.step),
        join_remarks(report),
    )


def _list_remarks(report: Report) -> list[str]:
    """Return what `list` says of a training, the most important first."""
    remarks = [find_head(each) for each in (*report.remarks, *report.unknown)]
    if report.problems:
        number = f"{len(report.problems)} {_plural(len(report.problems), 'problem')}"
        causes = dict.fromkeys(problem.cause for problem in report.problems)
        firsts = (next(problem for problem in report.problems if problem.cause == cause) for cause in causes)
        remarks.insert(0, f"{number}: {', '.join(map(_name_cause, firsts))}")
    if report.queue is not None:
        remarks.insert(0, describe_standing(report.queue))
    if repeated := find_repeated(report):
        remarks.insert(0, f"{repeated.pod} has failed {repeated.times} times ({repeated.cause})")
    if report.outcome is not None and report.outcome.error:
        remarks.insert(0, f"{report.outcome.cause}: {_shorten(report.outcome.error)}")
    elif report.seems_to_hang:
        remarks.append(describe_silence(report))
    elif report.slowdown:
        remarks.append(describe_slowdown(report))
    elif report.outcome is not None and report.outcome.cause in (NOTHING_DONE, RUN_KILLED):
        remarks.insert(0, f"{report.outcome.cause}: {report.outcome.sentence}")
    if report.outside_changes:
        names = list(dict.fromkeys(change.subject for change in report.outside_changes))
        remarks.append(f"changed outside Helm: {list_names(names)}")
    return remarks


def _name_cause(problem: ReportedProblem) -> str:
    refusal = describe_refusal(problem.message) if problem.cause == QUOTA_EXCEEDED.name else ""
    return f"{problem.cause} ({refusal})" if refusal else problem.cause


def find_head(remark: str) -> str:
    """Return the beginning of a remark that says what is the matter; what it means and what to do is in `why`."""
    if len(remark) <= _REMARK_LIMIT:
        return remark
    head = re.split(r"[:;.] |, (?=and |so |which )", remark)[0]
    return _shorten(re.sub(r" \([^()]*\)", "", head))


def join_remarks(report: Report) -> str:
    """Return as many remarks on a training as fit, the first one always, and how many more there are."""
    remarks = _list_remarks(report)
    shown = remarks[:1]
    for remark in remarks[1:]:
        if len("; ".join([*shown, remark])) > _REMARKS_LIMIT:
            break
        shown = [*shown, remark]
    more = f"; and {len(remarks) - len(shown)} more" if len(remarks) > len(shown) else ""
    return f"{'; '.join(shown)}{more}" if shown else "-"


def _count_pods(report: Report) -> str:
    """Return how many pods run of how many that the chart asks for."""
    running = [role.running for role in report.roles]
    known = str(sum(number or 0 for number in running)) if running and None not in running else "?"
    finished = 0 if report.is_over else sum(role.finished for role in report.roles)
    return f"{known}/{sum(role.wanted for role in report.roles)}{f' ({finished} finished)' if finished else ''}"


def _shorten(text: str) -> str:
    return text if len(text) <= _REMARK_LIMIT else text[: _REMARK_LIMIT - 1] + "…"


def _plural(number: int, word: str) -> str:
    return word if number == 1 else f"{word}s"
