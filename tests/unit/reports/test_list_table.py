"""What `list` says of a training in one row."""

from __future__ import annotations

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.list_table import list_lines
from trainchart.reports.report import Report, ReportedProblem, TrainingKey
from trainchart_runtime.run.state import RUNNING, Incident, Verdict


def test_a_long_error_is_cut_with_a_mark() -> None:
    outcome = Verdict("Failed", NOW, "program-error", "", error="no data " * 20)
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, "Failed", "pods", outcome=outcome)
    remark = list_lines([report])[1].partition("program-error: ")[2]
    assert remark.startswith("no data no data")
    assert (len(remark), remark[-1]) == (80, "…")


def test_a_list_shows_what_is_not_known_as_such() -> None:
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, "Unknown", "pods", unknown=("could not read pods",))
    row = list_lines([report])[1]
    assert row.split()[:9] == ["team-a", "exp1", "mnist", "Unknown", "?", "?/0", "?", "-", "-"]
    assert row.endswith("could not read pods")


def test_list_has_the_beginnings_of_long_remarks() -> None:
    held = "its run controller is held back: its Job is suspended (spec.suspend); nothing starts, restarts or ends it"
    remarks = (held, "a" * 90, "b" * 30, "c")
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, "Running", "record", remarks=remarks)
    row = list_lines([report])[1]
    assert row.endswith(f"  its run controller is held back; {'a' * 79}…; and 2 more")


@pytest.mark.parametrize(
    ("causes", "remark"),
    [
        (["admission-refused"] * 2, "2 problems: admission-refused"),
        (
            ["admission-refused", "volume-error", "volume-error", "admission-refused"],
            "4 problems: admission-refused, volume-error",
        ),
        (["volume-error", "quota-exceeded"], "2 problems: volume-error, quota-exceeded (quota q: pods, 9 of 9 used)"),
    ],
)
def test_list_names_every_cause_of_problems(causes: list[str], remark: str) -> None:
    words = "forbidden: exceeded quota: q, requested: pods=1, used: pods=9, limited: pods=9"
    problems = tuple(ReportedProblem(f"worker-{number}", cause, words) for number, cause in enumerate(causes))
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, "Running", "record", problems=problems)
    assert list_lines([report])[1].endswith(f"  {remark}")


@pytest.mark.parametrize(("times", "remark"), [(2, "-"), (3, "w-0 has failed 3 times (out-of-memory)")])
def test_list_names_what_fails_again_and_again(times: int, remark: str) -> None:
    deaths = tuple(Incident(NOW - 60 * each, "w-0", "n", "out-of-memory", 137, "", "") for each in range(times))
    report = Report(TrainingKey("team-a", "exp1", "mnist"), NOW, RUNNING, "record", incidents=deaths)
    assert list_lines([report])[1].endswith(f"  {remark}")
