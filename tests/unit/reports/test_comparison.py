"""Runs beside each other: which settings differ, what is not known, and which metric is the best."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.comparison import (
    Cell,
    Row,
    compare_reports,
    count_rows,
    describe_comparison,
    name_runs,
)
from trainchart.reports.comparison_text import lay_out
from trainchart.reports.metric_names import HIGHER, LOWER, find_better
from trainchart.reports.report import LOCAL, Progress, Report, TrainingKey
from trainchart.reports.run_settings import RoleSettings, RunSettings, describe_settings, parse_settings
from trainchart.reports.widths import measure
from trainchart_runtime.run.state import HISTORY_KEPT, HistoryEntry, Verdict

ROLES = {"worker": RoleSettings(2, "r/mnist:1.0", "1", "2Gi", "1 nvidia.com/gpu")}


def make_report(release: str = "exp-1", metrics: dict[str, Any] | None = None, **settings: Any) -> Report:
    """Return the report of a local run that took a minute, with hyperparameters and values as given."""
    made = RunSettings(
        "single", ROLES, **{"hyperparameters": {"seed": 1, "learningRate": 0.1}, "values": {}, **settings}
    )
    return Report(
        TrainingKey("", release, "mnist"),
        NOW,
        "Succeeded",
        "record",
        origin=LOCAL,
        folder=f".trainchart/runs/{release}",
        chart="mnist-0.1.0",
        record={"startedAt": NOW - 60, "code": {"sha256": "ab" * 32, "commit": "8dc71b42e2b96996", "isDirty": True}},
        settings=made,
        progress=Progress(1000, 512.0, metrics or {}),
        outcome=Verdict("Succeeded", NOW),
    )


def find_row(name: str, *reports: Report) -> Row:
    comparison = compare_reports(reports)
    [row] = [r for r in (*comparison.settings, *comparison.results, *comparison.metrics) if r.name == name]
    return row


def text(*reports: Report, shows_all: bool = False, width: int | None = None) -> list[str]:
    lines = lay_out(compare_reports(reports), shows_all=shows_all, width=width)
    return ["".join(span.text for span in line) for line in lines]


def test_only_settings_that_differ_are_shown() -> None:
    first, second = make_report(), make_report("exp-2", hyperparameters={"seed": 2, "learningRate": 0.1})
    shown = text(first, second)
    assert shown[:3] == ["SETTINGS              exp-1                    exp-2", "hyperparameters.seed  1                        2", "RESULTS"]  # fmt: skip # noqa: E501
    assert shown[-1] == "9 other settings are the same; --all shows them"
    everything = text(first, second, shows_all=True)
    assert [line.split()[0] for line in everything if line.startswith("hyperparameters.")] == [
        "hyperparameters.seed",
        "hyperparameters.learningRate",
    ]
    assert "settings are the same" not in "\n".join(everything)


def test_setting_of_one_model_only_is_a_dash_in_the_other() -> None:
    row = find_row("hyperparameters.dropout", make_report(), make_report("b", hyperparameters={"dropout": 0.5}))
    assert row.cells == (Cell(None), Cell(0.5))
    assert row.differs


def test_unknown_setting_does_not_count_as_different() -> None:
    row = find_row("hyperparameters.seed", make_report(), make_report("b", hyperparameters=None))
    assert row.cells[1].is_known is False
    assert not row.differs
    comparison = compare_reports([make_report(), make_report("b", hyperparameters=None, values=None)])
    assert count_rows(comparison.settings)[1] == 2


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [(1, 1.0, False), (1, True, True), (0, False, True), ("1", 1, True), (None, None, False), ([1], [1], False),
     ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False), (10**400, 1e300, True), (float("nan"), float("nan"), False)],
)  # fmt: skip
def test_values_differ_by_what_they_are(one: Any, other: Any, differs: bool) -> None:
    reports = [make_report(hyperparameters={"x": one}), make_report("b", hyperparameters={"x": other})]
    assert find_row("hyperparameters.x", *reports).differs is differs


def test_values_that_the_user_set_are_named_as_in_the_chart() -> None:
    values = {"roles": {"worker": {"replicas": 2, "stopGraceSeconds": 9}}, "hyperparameters": {"seed": 1}, "run": {}}
    names = [row.name for row in compare_reports([make_report(values=values), make_report("b")]).settings]
    assert names[-2:] == ["roles.worker.stopGraceSeconds", "run"]
    assert names.count("roles.worker.replicas") == 1


def test_order_of_hyperparameters_is_the_charts() -> None:
    one = make_report(hyperparameters={"a": 1, "c": 1, "d": 1})
    other = make_report("b", hyperparameters={"a": 1, "b": 1, "c": 1, "e": 1})
    names = [row.name for row in compare_reports([one, other]).settings if row.name.startswith("hyper")]
    assert names == [f"hyperparameters.{name}" for name in "abced"]


@pytest.mark.parametrize(
    ("metric", "better"),
    [("loss", LOWER), ("val_loss", LOWER), ("evaluator/loss", LOWER), ("valLoss", LOWER), ("error_rate", LOWER),
     ("RMSE", LOWER), ("accuracy", HIGHER), ("evaluator/top_5_accuracy", HIGHER), ("AUC", HIGHER), ("f1", HIGHER),
     ("log_likelihood", HIGHER), ("negative_log_likelihood", ""), ("neg_mse", ""), ("loss_scale", ""),
     ("learning_rate", ""), ("accuracy_loss", ""), ("glossary", ""), ("", ""), ("☃", "")],
)  # fmt: skip
def test_better_direction_follows_from_the_name(metric: str, better: str) -> None:
    assert find_better(metric) == better


def best(name: str, *values: Any) -> list[bool]:
    reports = [
        make_report(f"exp-{at}", metrics={} if value is None else {name: value}) for at, value in enumerate(values)
    ]
    return [cell.is_best for cell in find_row(name, *reports).cells]


def test_best_metric_is_marked_where_the_direction_is_known() -> None:
    assert best("loss", 0.5, 0.25, None) == [False, True, False]
    assert best("accuracy", 0.5, 0.25, 0.5) == [True, False, True]
    assert best("temperature", 0.5, 0.25) == [False, False]
    assert best("loss", 0.5, 0.5) == [False, False]
    assert best("loss", 0.5, None) == [False, False]
    assert best("loss", float("nan"), 0.5, 0.7) == [False, True, False]
    assert best("accuracy", float("inf"), 0.5, 10**400) == [False, False, True]


@pytest.mark.parametrize(
    ("modes", "better"), [(("max", "max"), HIGHER), (("min", "auto"), LOWER), (("min", "max"), ""), (("auto", "x"), "")]
)
def test_early_stop_says_which_direction_is_better(modes: tuple[str, str], better: str) -> None:
    reports = [
        make_report(
            f"exp-{at}",
            metrics={"evaluator/margin": at},
            hyperparameters={"earlyStopMetric": "margin", "earlyStopMode": mode},
        )
        for at, mode in enumerate(modes)
    ]
    assert find_row("evaluator/margin", *reports).better == better


def test_faster_run_is_marked_and_shorter_one_is_not() -> None:
    slow, fast = make_report(), dataclasses.replace(make_report("b"), progress=Progress(1000, 900.0))
    assert [cell.is_best for cell in find_row("examples/s", slow, fast).cells] == [False, True]
    assert not any(cell.is_best for cell in find_row("duration", slow, fast).cells)


def test_titles_tell_runs_of_one_name_apart() -> None:
    local, other = make_report(), make_report("exp-2")
    remote = dataclasses.replace(local, key=TrainingKey("team-a", "exp-1", "mnist"), origin="cluster")
    words = dataclasses.replace(remote, key=TrainingKey("team-a", "exp-1", "words"))
    assert name_runs([local, other]) == ["exp-1", "exp-2"]
    assert name_runs([local, remote]) == ["exp-1 (this machine)", "exp-1 (team-a)"]
    assert name_runs([remote, words]) == ["exp-1/mnist", "exp-1/words"]
    twin = dataclasses.replace(local, folder="elsewhere/exp-1")
    assert len(set(name_runs([local, twin]))) == 2


def test_duration_of_a_release_needs_its_whole_history() -> None:
    remote = dataclasses.replace(make_report(), origin="cluster", history=(HistoryEntry(NOW - 90, "Starting", ""),))
    assert find_row("duration", remote, make_report("b")).cells == (Cell(90.0), Cell(60.0))
    forgetful = dataclasses.replace(remote, history=remote.history * HISTORY_KEPT)
    assert not find_row("duration", forgetful, make_report("b")).cells[0].is_known


def test_narrow_terminal_gets_blocks_of_runs() -> None:
    reports = [make_report(f"exp-{number}", hyperparameters={"seed": number}) for number in range(5)]
    lines = text(*reports, width=80)
    assert max(map(measure, lines)) <= 80
    headings = [line.split()[1:] for line in lines if line.startswith("SETTINGS")]
    assert headings == [["exp-0", "exp-1"], ["exp-2", "exp-3"], ["exp-4"]]
    assert len([line for line in text(*reports) if line.startswith("SETTINGS")]) == 1


def test_long_and_wide_values_stay_in_their_column() -> None:
    reports = [make_report(hyperparameters={"words": "語" * 100}), make_report("b", hyperparameters={"words": "x\ny"})]
    [line] = [line for line in text(*reports) if line.startswith("hyperparameters.words")]
    assert "x y" in line
    assert measure(line) < 90


def test_json_holds_every_row_and_no_bare_nan() -> None:
    document = describe_comparison(compare_reports([make_report(metrics={"loss": float("nan")}), make_report("b")]))
    again = json.loads(json.dumps(document, allow_nan=False))
    assert [run["title"] for run in again["runs"]] == ["exp-1", "b"]
    assert again["metrics"][0]["cells"][0] == {"value": "NaN", "known": True, "best": False}
    assert {"seed", "learningRate"} <= {row["name"].rpartition(".")[2] for row in again["settings"]}


def test_settings_come_back_from_their_record() -> None:
    settings = make_report().settings
    assert parse_settings(json.loads(json.dumps(describe_settings(settings)))) == settings


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"worker": 5}, {"worker": {"replicas": "2"}}])
def test_record_of_another_type_is_not_known(odd: Any) -> None:
    assert parse_settings({"roles": odd, "hyperparameters": 5, "values": "x", "strategy": None}) == RunSettings()


def test_long_values_are_cut_where_they_are_the_same() -> None:
    images = [f"registry.example.com/machine-learning/mnist:1.0.{number}" for number in range(2)]
    reports = [make_report(f"{'a-long-name-' * 3}{number}", hyperparameters={"image": each})
               for number, each in enumerate(images)]  # fmt: skip
    heading, row = text(*reports)[:2]
    assert "…" in row
    for words, ends in ((row, ("mnist:1.0.0", "mnist:1.0.1")), (heading, ("name-0", "name-1"))):
        assert all(words.split()[at + 1].endswith(end) for at, end in enumerate(ends))


@pytest.mark.timeout(60)
def test_runs_with_very_many_metrics_are_compared_in_no_time() -> None:
    """A forged record holds about as many as this; each was once looked for among all before it."""
    metrics = {f"metric{number}": number for number in range(60_000)}
    comparison = compare_reports([make_report(metrics=metrics), make_report("b", {"first": 1, **metrics, "last": 1})])
    names = [row.name for row in comparison.metrics]
    assert names == ["first", *metrics, "last"]
