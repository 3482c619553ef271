"""The table of local runs: what tells them apart, such as what was set, how far each came, what it measured. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.reports.list_table import join_remarks
from trainchart.reports.metric_names import choose_headline
from trainchart.reports.report import Report
from trainchart.reports.text import describe_seconds, make_table
from trainchart.reports.timing import find_seconds, find_start
from trainchart.reports.widths import cut, measure

_OPTIONAL = ("METRICS", "SET", "REMARK")
"""Columns that are left out where no run has anything for them."""
_CUT = ("REMARK", "SET", "METRICS")
"""Columns that a narrow terminal cuts, the first of them first."""
_NARROWEST = 12
_GAP = 2


def local_lines(reports: Sequence[Report], width: int | None) -> list[str]:
    """Return the table of local runs; `width` is the terminal's, None for as wide as it needs to be."""
    rows = [_describe(report) for report in reports]
    headings = [name for name in rows[0] if name not in _OPTIONAL or any(row[name] != "-" for row in rows)]
    if width is not None:
        rows = _fit(rows, headings, width)
        if _excess(rows, headings, width) > 0:
            headings.remove("CHART")  # the name of a run mostly says it
    return make_table(headings, [[row[name] for name in headings] for row in rows])


def _describe(report: Report) -> dict[str, str]:
    began, seconds = find_start(report), find_seconds(report)
    step, last = report.progress.step, report.settings.last_step
    cells = {
        "LOCAL RUN": report.key.release,
        "CHART": report.chart or report.key.chart,
        "PHASE": report.phase,
        "STARTED": f"{describe_seconds(report.now - began)} ago" if began else "?",
        "TOOK": "?" if seconds is None else describe_seconds(seconds),
        "STEP": "-" if step is None else f"{step}/{last}" if last else str(step),
        "METRICS": ", ".join(_list_metrics(report)) or "-",
        "SET": ", ".join(_list_set(report.settings.values or {})) or "-",
        "REMARK": join_remarks(report),
    }
    return {name: cut(text, _LIMITS.get(name, 60)) for name, text in cells.items()}


_LIMITS = {"SET": 120, "REMARK": 150}


def _list_metrics(report: Report) -> Iterator[str]:
    progress = report.progress
    for name in choose_headline([*progress.metrics, *progress.nan_metrics]):
        value: object = progress.metrics.get(name, "NaN")
        yield f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"


def _list_set(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield KEY=VALUE for each value that the user set; hyperparameters by their own names."""
    for key, value in values.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from _list_set(value, f"{path}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{path.removeprefix('hyperparameters.')}={text}"


def _fit(rows: list[dict[str, str]], headings: Sequence[str], width: int) -> list[dict[str, str]]:
    """Return the rows with cells cut so that they fit, as far as the columns that may be cut allow."""
    for name in (name for name in _CUT if name in headings):
        excess = _excess(rows, headings, width)
        if excess > 0:
            room = max(_NARROWEST, _measure_column(name, rows) - excess)
            rows = [{**row, name: cut(row[name], room)} for row in rows]
    return rows


def _excess(rows: Sequence[Mapping[str, str]], headings: Sequence[str], width: int) -> int:
    """Return by how many columns the table is too wide for a terminal."""
    return sum(_measure_column(name, rows) + _GAP for name in headings) - _GAP - width


def _measure_column(name: str, rows: Sequence[Mapping[str, str]]) -> int:
    return max(measure(text) for text in (name, *(row[name] for row in rows)))
