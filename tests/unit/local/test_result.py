"""Which failure a run names as the first."""

from __future__ import annotations

from trainchart.local.result import PodEnd, explain_failure
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
