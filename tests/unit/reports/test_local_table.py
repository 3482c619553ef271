"""What tells local runs apart in `list`, and what a narrow terminal keeps of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.local_table import local_lines
from trainchart.reports.metric_names import choose_headline, find_loss
from trainchart.reports.report import LOCAL, Progress, Report, TrainingKey
from trainchart.reports.run_settings import RunSettings
from trainchart.reports.widths import cut, cut_alike, measure
from trainchart_runtime.run.state import Verdict

VALUES = {"hyperparameters": {"learningRate": 0.01, "optimizer": "adam"}, "roles": {"worker": {"replicas": 3}}}


def make_report(values: dict[str, Any] | None = None, **changes: Any) -> Report:
    report = Report(
        TrainingKey("", "exp-1", "mnist"),
        NOW,
        "Succeeded",
        "record",
        origin=LOCAL,
        chart="mnist-0.1.0",
        record={"startedAt": NOW - 600},
        settings=RunSettings(hyperparameters={"maxSteps": 1000}, values=values),
        progress=Progress(400, 512.0, {"loss": 0.25, "evaluator/accuracy": 0.875}),
        outcome=Verdict("Succeeded", NOW - 300),
    )
    return dataclasses.replace(report, **changes)


def test_run_shows_what_was_set_and_what_came_of_it() -> None:
    heading, row = local_lines([make_report(VALUES)], None)
    assert heading.split() == ["LOCAL", "RUN", "CHART", "PHASE", "STARTED", "TOOK", "STEP", "METRICS", "SET"]
    for words in (
        "exp-1 mnist-0.1.0 Succeeded 10 min ago 5 min 400/1000",
        "loss 0.25, evaluator/accuracy 0.875",
        "learningRate=0.01, optimizer=adam, roles.worker.replicas=3",
    ):
        assert words in " ".join(row.split())


def test_columns_that_no_run_fills_are_left_out() -> None:
    [heading, row] = local_lines([make_report(progress=Progress())], None)
    assert heading.split()[-1] == "STEP"
    assert row.split()[-1] == "-"


def test_diverged_loss_is_shown_as_nan() -> None:
    assert "loss NaN" in local_lines([make_report(progress=Progress(4, nan_metrics=("loss",)))], None)[1]


@pytest.mark.parametrize("width", [10, 60, 80, 100, 140, 1000])
def test_narrow_terminal_cuts_settings_before_metrics(width: int) -> None:
    lines = local_lines([make_report(VALUES)], width)
    assert max(map(measure, lines)) <= max(width, 80)
    assert ("mnist-0.1.0" in lines[1]) is (width > 80)
    assert ("evaluator/accuracy 0.875" in lines[1]) is (width >= 110)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["accuracy", "loss"], ["loss", "accuracy"]),
        (["loss", "accuracy", "evaluator/accuracy"], ["loss", "evaluator/accuracy"]),
        (["val_loss", "x"], ["val_loss"]),
        (["x", "y"], ["x"]),
        ([], []),
    ],
)
def test_headline_is_the_loss_and_a_score(names: list[str], chosen: list[str]) -> None:
    assert choose_headline(names) == chosen


def test_loss_is_found_by_its_name() -> None:
    assert find_loss(["Total_Loss", "loss"]) == "loss"
    assert find_loss(["accuracy", "Total_Loss"]) == "Total_Loss"
    assert find_loss(["accuracy"]) is None


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("語語", 4, "語語"), ("語語語", 4, "語…"),
     ("a\nb\tc", 9, "a b c"), ("ab", 1, "…")],
)  # fmt: skip
def test_text_is_cut_by_its_width_on_a_terminal(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


@given(st.lists(st.text(max_size=60) | st.text("ab", min_size=30, max_size=60), max_size=5), st.integers(6, 40))
def test_texts_cut_together_fit(texts: list[str], width: int) -> None:
    assert all(measure(text) <= width for text in cut_alike(texts, width))


@given(st.text("ab", max_size=50), st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_ends_that_differ_stay_different(begin: str, one: str, other: str) -> None:
    shown = cut_alike([begin + one, begin + other], 16)
    assert (shown[0] == shown[1]) is (one == other)
