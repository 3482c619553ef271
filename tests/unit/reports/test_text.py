"""Durations, tables, and what a page shows of a release with a thousand workers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.report import LOCAL, PodReport, Progress, Report, ReportedProblem, TrainingKey
from trainchart.reports.text import describe_seconds, describe_time, make_table, problem_lines, status_lines
from trainchart_runtime.run.state import RUNNING


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (119, "1 min"), (3599, "59 min"), (3600, "1 h"),
     (3660, "1 h 1 min"), (86399, "23 h 59 min"), (90000, "1 d 1 h"), (86400 * 3 + 60, "3 d 1 min")],
)  # fmt: skip
def test_a_duration_in_its_largest_units(seconds: float, text: str) -> None:
    assert describe_seconds(seconds) == text


@pytest.mark.parametrize("at", [0.0, -1.0, 1e300, float("nan")])
def test_a_time_that_makes_no_sense_is_a_question_mark(at: float) -> None:
    assert describe_time(at) == "?"


def test_columns_are_below_each_other() -> None:
    assert make_table(("A", "B"), [("long one", "x"), ("y", "z")]) == ["A         B", "long one  x", "y         z"]


def make_pod(number: int, state: str = "Running", restarts: int = 0) -> PodReport:
    return PodReport(
        f"exp1-worker-{number}", f"worker-{number}", "worker", state, "node1", restarts, NOW - 60, {}, False
    )


def test_of_a_thousand_pods_those_are_shown_that_need_a_look() -> None:
    pods = [make_pod(number) for number in range(1000)]
    pods[500] = make_pod(500, "Pending")
    pods[700] = make_pod(700, restarts=3)
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, "Running", "record", pods=tuple(pods))
    lines = status_lines(report)
    shown = [line.split()[0] for line in lines if line.startswith("worker-")]
    assert shown == ["worker-0", "worker-1", "worker-500", "worker-700"]
    assert "and 996 more" in lines
    assert len(status_lines(dataclasses.replace(report, pods=tuple(pods[:20])))) > 20


def test_the_same_trouble_of_many_pods_is_said_once() -> None:
    problems = [ReportedProblem(f"worker-{number}", "unschedulable", "no room") for number in range(9)]
    lines = problem_lines([*problems, ReportedProblem("ps-0", "odd-cause", "?")], "exp1 -n team-a")
    assert lines[0].startswith("problem: worker-0, worker-1, worker-2, worker-3 and 5 more: No node")
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, "  no new step for 12 min: trainchart why exp1 -n team-a shows what its pods printed last"),
        (
            {"now": NOW + 100 - 720, "seconds_per_step": 0.5},
            "  no new step for 1 min: trainchart why exp1 -n team-a shows what its pods printed last",
        ),
        ({"problems": (ReportedProblem("worker-1", "volume-error", "?"),)}, "  no new step for 12 min"),
        ({"origin": LOCAL, "folder": "/r/exp1"}, "  no new step for 12 min: trainchart logs exp1 --runs-dir /r"),
        ({"now": NOW + 100 - 720}, ""),
    ],
)
def test_status_says_that_no_step_comes(changed: dict[str, Any], line: str) -> None:
    progress = Progress(40, at=NOW - 720)
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, RUNNING, "record", progress=progress)
    found = [each for each in status_lines(dataclasses.replace(report, **changed)) if "no new step" in each]
    assert found == [line] * bool(line)
