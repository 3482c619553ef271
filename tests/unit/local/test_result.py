"""Which failure a run names as the first, and whose speed it reports."""

from __future__ import annotations

import pytest

from trainchart.local.result import PodEnd, PodResult, RunResult, explain_failure
from trainchart.local.verdict import Verdict
from trainchart_runtime import causes
from trainchart_runtime.termination import Termination


def end(exit_code: int, termination: Termination | None, at: float = 0.0) -> PodEnd:
    return PodEnd(exit_code, termination, "/runs/exp-1/logs/pod.log", "last words", at)


def test_the_origin_counts_and_not_who_followed() -> None:
    ends = {
        "chief-0": end(1, Termination(causes.PEER_LOST.name, 1, finished_at=10.0, error="UnavailableError: lost")),
        "ps-0": end(1, Termination(causes.PROGRAM_ERROR.name, 1, finished_at=10.2, error="ValueError: bad")),
    }
    failure = explain_failure(ends)
    assert failure is not None
    assert (failure.pod, failure.error, failure.at) == ("ps-0", "ValueError: bad", 10.2)
    assert failure.sentence == causes.PROGRAM_ERROR.sentence
    assert failure.hint == causes.PROGRAM_ERROR.hint


def test_a_launcher_without_a_message_counts_last() -> None:
    silent = end(-9, None, at=1.0)
    told = end(1, Termination(causes.PROGRAM_ERROR.name, 1, finished_at=5.0))
    first = explain_failure({"worker-0": silent, "worker-1": told})
    assert first is not None
    assert first.pod == "worker-1"
    alone = explain_failure({"worker-0": silent})
    assert alone is not None
    assert alone.pod == "worker-0"
    assert "signal 9" in alone.sentence
    assert alone.error == "last words"


def test_no_end_is_no_failure() -> None:
    assert explain_failure({}) is None


@pytest.mark.parametrize(("speeds", "expected"), [((400.0, 399.0), 400.0), ((None, 399.0), 399.0), ((None,), None)])
def test_speed_of_workers_that_all_decide_counts_once(speeds: tuple[float | None, ...], expected: float | None) -> None:
    pods = tuple(
        PodResult(
            f"worker-{at}", f"exp-7-worker-{at}", "worker", "finished", 0, 1, 0, 40, speed, {}, f"worker-{at}.log"
        )
        for at, speed in enumerate(speeds)
    )
    deciding = tuple(pod.label for pod in pods)
    result = RunResult(Verdict.SUCCEEDED, "exp-7", "/runs/exp-7", 3.0, pods, deciding, None, None)
    assert result.examples_per_second == expected
