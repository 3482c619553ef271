"""What the leading pod of a run tells of its steps: asked often, but not of a user who may not ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import trainchart.actions.support.live_progress as live
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.live_progress import LiveProgress, find_leading_pod, find_status_port, parse_status
from trainchart.errors import ClusterError, Forbidden, Unreachable
from trainchart.reports.report import LOCAL, PodReport, Progress, Report, RoleReport, TrainingKey

CHIEF = PodReport("exp1-mnist-chief-0", "chief-0", "chief", "Running", "node1", 0, 100.0, {}, holds_gpus=False)
WORKER = replace(CHIEF, name="exp1-mnist-worker-0", label="worker-0", role="worker")
RECORDED = Progress(10, 5.0, {"loss": 0.5, "evaluator/accuracy": 0.7}, at=990.0, fruitless_restarts=2)
REPORT = Report(
    TrainingKey("team-a", "exp1", "mnist"), 1000.0, "Running", "record",
    run_id="r1", progress=RECORDED, roles=(RoleReport("chief", 1, 1), RoleReport("worker", 2, 2)), pods=(CHIEF, WORKER),
)  # fmt: skip
Ask = Callable[..., LiveProgress]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    monotonic = time


class Api:
    def read_object(self, kind: Any, namespace: str, name: str) -> dict[str, Any]:
        ports = [{"name": "tf", "containerPort": 2222}, {"name": "status", "containerPort": 2300}]
        return {"spec": {"containers": [{"ports": ports}]}}


def status(step: int | None, run_id: str = "r1", **more: Any) -> bytes:
    document = {"runId": run_id, "step": step, "examplesPerSecond": 7.5, "metrics": {"loss": 0.25}, **more}
    return json.dumps(document).encode()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(live, "time", clock)
    return clock


@pytest.fixture
def asked() -> list[tuple[str, int]]:
    """Pods and ports that were asked."""
    return []


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, asked: list[tuple[str, int]]) -> list[bytes | ClusterError]:
    """What pods answer; the last goes on."""
    answers: list[bytes | ClusterError] = []

    def read(_: object, namespace: str, pod: str, port: int, path: str) -> bytes:
        asked.append((pod, port))
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, ClusterError):
            raise found
        return found

    monkeypatch.setattr(live, "open_cluster", lambda place: (Api(), place.namespace))
    monkeypatch.setattr(live, "read_pod_page", read)
    return answers


def test_a_told_step_counts_over_the_record(clock: Clock, answer: list[Any], asked: list[Any]) -> None:
    answer += [status(12), status(12), status(13)]
    progress = LiveProgress(Place())
    first = progress.renew(REPORT).progress
    assert (first.step, first.examples_per_second, first.at) == (12, 7.5, 1000.0)
    assert first.metrics == {"loss": 0.25, "evaluator/accuracy": 0.7}
    assert first.fruitless_restarts == 2
    clock.now += 1
    assert progress.renew(REPORT).progress.at == 1000.0
    assert progress.renew(REPORT).progress.at == 1001.0
    assert asked == [(CHIEF.name, 2300)] * 3
    assert progress.is_live


def test_who_may_not_ask_asks_no_more_for_a_while(clock: Clock, answer: list[Any], asked: list[Any]) -> None:
    answer += [Forbidden("pods/portforward is forbidden"), status(12)]
    progress = LiveProgress(Place())
    for _ in range(59):
        assert progress.renew(REPORT) is REPORT
        clock.now += 1
    assert (len(asked), progress.is_live, progress.refusal) == (1, False, "pods/portforward is forbidden")
    clock.now += 2
    assert progress.renew(REPORT).progress.step == 12
    assert (progress.is_live, progress.refusal) == (True, "")


def test_steps_do_not_go_back_when_one_answer_fails(clock: Clock, answer: list[Any], asked: list[Any]) -> None:
    answer += [status(12), Unreachable("lost")]
    progress = LiveProgress(Place())
    progress.renew(REPORT)
    assert [progress.renew(REPORT).progress.step for _ in range(3)] == [12] * 3
    assert (len(asked), progress.is_live, progress.refusal) == (2, False, "")
    clock.now += 60
    assert progress.renew(REPORT) is REPORT


def test_a_new_pod_has_told_nothing_yet(clock: Clock, answer: list[Any]) -> None:
    answer += [status(12), status(None)]
    progress = LiveProgress(Place())
    progress.renew(REPORT)
    moved = replace(REPORT, pods=(replace(CHIEF, created=200.0), WORKER))
    assert progress.renew(moved) is moved
    assert progress.is_live


@pytest.mark.parametrize(
    "report",
    [
        replace(REPORT, phase="Succeeded"),
        replace(REPORT, origin=LOCAL),
        replace(REPORT, pods=None),
        replace(REPORT, pods=(WORKER,)),
        replace(REPORT, pods=(replace(CHIEF, state="Pending"), WORKER)),
    ],
)
def test_only_a_leading_pod_that_runs_is_asked(report: Report, answer: list[Any], asked: list[Any]) -> None:
    answer.append(status(12))
    assert LiveProgress(Place()).renew(report) is report
    assert asked == []


def test_without_a_chief_the_first_worker_leads() -> None:
    found = find_leading_pod(replace(REPORT, roles=(RoleReport("worker", 2, 2),), pods=(WORKER,)))
    assert found is WORKER


def test_the_status_of_another_run_is_not_shown() -> None:
    assert parse_status(status(12, "r0"), "r1") is None
    assert parse_status(status(12, ""), "") is not None


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b"[" * 100_000])
def test_a_status_that_is_none_is_an_error(text: bytes) -> None:
    with pytest.raises(ClusterError):
        parse_status(text, "r1")


def test_hostile_numbers_and_names_are_left_out() -> None:
    metrics = {"loss": "<b>", "x" * 1000: 1.0, "good": 2.0}
    found = parse_status(status(12, metrics=metrics, examplesPerSecond=True, nanMetrics=5), "r1")
    assert found is not None
    assert (found.metrics, found.examples_per_second, found.nan_metrics) == ({"good": 2.0}, None, ())
    assert parse_status(status(2**70), "r1") is None


def test_a_pod_without_a_named_port_has_the_usual_one() -> None:
    assert find_status_port({"spec": {"containers": [{"ports": [{"containerPort": 1}, {"name": "status"}]}]}}) == 2223
