"""Runs of any names, settings and numbers beside each other: a table that fits, valid JSON, and at most one best."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainchart.reports.comparison import Row, compare_reports, describe_comparison
from trainchart.reports.comparison_text import lay_out
from trainchart.reports.local_table import local_lines
from trainchart.reports.report import CLUSTER, LOCAL, Progress, Report, TrainingKey
from trainchart.reports.report_json import describe_report
from trainchart.reports.run_settings import RoleSettings, RunSettings
from trainchart.reports.widths import measure
from trainchart_runtime.log_text import clean
from trainchart_runtime.run.state import Verdict

TEXTS = st.text(max_size=40) | st.sampled_from(["loss", "accuracy", "\x1b[2J", "a.b", "<script>", "語" * 30, "\u202ex"])
ODD_NUMBERS = [10**400, -(10**400), float("nan"), float("inf"), -0.0, 5e-324]
NUMBERS = st.floats() | st.integers() | st.sampled_from(ODD_NUMBERS)
VALUES = st.none() | st.booleans() | NUMBERS | TEXTS | st.lists(NUMBERS | TEXTS, max_size=3)
TREES = st.dictionaries(TEXTS, VALUES | st.dictionaries(TEXTS, VALUES, max_size=3), max_size=4)
TIMES = st.sampled_from([0.0, -1.0, 1e300, 1_800_000_000.0, float("nan")])


@st.composite
def reports(draw: st.DrawFn) -> Report:
    settings = RunSettings(
        draw(TEXTS),
        draw(
            st.dictionaries(TEXTS, st.builds(RoleSettings, st.integers(0, 9), TEXTS, TEXTS, TEXTS, TEXTS), max_size=3)
        ),
        draw(st.none() | TREES),
        draw(st.none() | TREES),
    )
    record: dict[str, Any] = {"startedAt": draw(TIMES), "code": draw(st.none() | st.dictionaries(TEXTS, VALUES))}
    return Report(
        TrainingKey(draw(TEXTS), draw(TEXTS), draw(TEXTS)),
        1_900_000_000.0,
        draw(st.sampled_from(["Running", "Failed", "Succeeded"])),
        "record",
        origin=draw(st.sampled_from([LOCAL, CLUSTER])),
        chart=draw(TEXTS),
        record=record,
        settings=settings,
        attempt=draw(st.none() | st.integers(0)),
        progress=Progress(
            draw(st.none() | st.integers()), draw(st.none() | NUMBERS), draw(st.dictionaries(TEXTS, NUMBERS))
        ),
        outcome=draw(st.none() | st.builds(Verdict, st.sampled_from(["Failed", "Succeeded"]), TIMES, TEXTS)),
    )


@given(st.lists(reports(), min_size=1, max_size=5), st.none() | st.integers(1, 200), st.booleans())
def test_any_runs_can_be_compared(compared: list[Report], width: int | None, shows_all: bool) -> None:
    comparison = compare_reports(compared)
    every = (*comparison.settings, *comparison.results, *comparison.metrics)
    assert all(len(row.cells) == len(compared) for row in every)
    assert len({row.name for row in comparison.settings}) == len(comparison.settings)
    json.dumps(describe_comparison(comparison), allow_nan=False)
    for row in every:
        _check_best(row)
    json.dumps([describe_report(report)["seconds"] for report in compared], allow_nan=False)
    assert all(clean(line) == line for line in local_lines(compared, width))
    for line in lay_out(comparison, shows_all=shows_all, width=width):
        text = "".join(span.text for span in line)
        assert clean(text) == text
        # One column beside the names is always there, however narrow the terminal.
        assert width is None or measure(text) <= max(width, 90)


def _check_best(row: Row) -> None:
    best = [cell for cell in row.cells if cell.is_best]
    assert not best or row.better
    assert len({cell.value for cell in best}) <= 1
    assert len(best) < max(2, len(row.cells))
