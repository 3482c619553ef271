"""Watching a promotion: what ends it, by pods and requests that tests make up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import trainchart.actions.support.promotion_watch as watching
from trainchart.actions.support.model_servers import RequestReader
from trainchart.actions.support.promotion_watch import Watch, Watched, watch_promotion
from trainchart.errors import Forbidden, Unreachable
from trainchart.promotion.record import Model
from trainchart.promotion.rollout import Requests, Rollout

MODEL = Model(41, "sha256:abc", "claim", "saved_model")
WATCH = Watch(60, 20, 0.01)
STARTS = Rollout(2, 1, is_done=False, pods=("a",), waiting="unschedulable: 0/2 nodes fit")
DONE = Rollout(2, 2, is_done=True, pods=("a", "b"))
FAILED = Rollout(2, 1, is_done=False, failure="fetch of b ended")
NONE = Requests()
Look = Callable[..., Any]


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Watched, list[str], float]]:
    """Return a function that watches looks, of which the last goes on, and counts of requests of each pod."""

    def run(
        looks: list[Rollout | Exception], counts: Sequence[Requests | Exception] = (NONE,), watch: Watch = WATCH
    ) -> tuple[Watched, list[str], float]:
        clock, said = Clock(), []
        next_look = _go_on(looks)
        next_count = _go_on(counts)
        monkeypatch.setattr(watching, "time", clock)
        monkeypatch.setattr(watching, "read_deployment", lambda *_: ({}, ()))
        monkeypatch.setattr(watching, "read_rollout", lambda *_: next_look())
        monkeypatch.setattr(RequestReader, "_run_in", lambda *_: next_count())
        monkeypatch.setattr(RequestReader, "_ask_proxy", lambda *_: next_count())
        api: Any = None
        found = watch_promotion(api, "team-a", ("digits", "trainchart"), MODEL, watch, said.append)
        return found, said, clock.now - 1000

    return run


def write_page(requests: Requests) -> bytes:
    name = "trainchart_serving_requests_total"
    good = requests.total - requests.failed
    return f'{name}{{code="OK"}} {good}.0\n{name}{{code="INTERNAL"}} {requests.failed}.0\n'.encode()


def test_the_way_into_pods_that_works_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(way: str, *problems: Exception | None) -> Callable[[object, str], bytes]:
        left = list(problems)

        def read(_: object, pod: str) -> bytes:
            asked.append((way, pod))
            problem = left.pop(0) if left else None
            if problem is not None:
                raise problem
            return write_page(Requests(5, 1))

        return read

    api: Any = None
    monkeypatch.setattr(RequestReader, "_run_in", ask("exec", Forbidden("no pods/exec")))
    monkeypatch.setattr(RequestReader, "_ask_proxy", ask("proxy"))
    reader = RequestReader(api, "team-a", "trainchart")
    assert [reader.read(["b", "a"]), reader.read(["a"])] == [Requests(10, 2), Requests(5, 1)]
    assert asked == [("exec", "a"), ("proxy", "a"), ("proxy", "b"), ("proxy", "a")]
    asked.clear()
    # A way that has worked is not given up for one failure.
    monkeypatch.setattr(RequestReader, "_run_in", ask("exec", None, Unreachable("lost")))
    reader = RequestReader(api, "team-a", "trainchart")
    reader.read(["a"])
    with pytest.raises(Unreachable):
        reader.read(["a"])
    reader.read(["a"])
    assert asked == [("exec", "a")] * 3


def _go_on(values: Sequence[Any]) -> Look:
    all_values = itertools.chain(values, itertools.repeat(values[-1]))

    def take() -> Any:
        value = next(all_values)
        if isinstance(value, Exception):
            raise value
        return write_page(value) if isinstance(value, Requests) else value

    return take


def test_progress_is_told_once_for_each_change(watch: Look) -> None:
    found, said, seconds = watch([STARTS, STARTS, Rollout(2, 1, is_done=False), DONE], [Requests(50, 0)])
    assert (found.failure, found.requests) == ("", Requests(100, 0))
    assert said == [
        "1 of 2 pods serve version 41; unschedulable: 0/2 nodes fit",
        "1 of 2 pods serve version 41",
        "all 2 pods serve version 41; counting failed requests for 20 s",
        "0 of 100 requests failed",
    ]
    assert seconds == 23


def test_a_failed_pod_and_the_time_limit_end_it(watch: Look) -> None:
    assert watch([STARTS, FAILED])[0] == Watched("fetch of b ended")
    found, _, seconds = watch([STARTS])
    assert (found.is_late, seconds) == (True, 60)
    assert found.failure == "1 of 2 pods serve version 41; unschedulable: 0/2 nodes fit after 1 min"
    # It may also fail once it serves.
    assert watch([DONE, DONE, FAILED])[0].failure == "fetch of b ended"


def test_too_many_failed_requests_end_it(watch: Look) -> None:
    found, _, seconds = watch([DONE], [Requests(10, 0), Requests(10, 0), Requests(500, 6)])
    assert found.failure == "12 of 1000 requests failed (1.2%), more than --max-error-rate 0.01"
    assert seconds == 4
    # A few failures among few requests may be chance, so more are waited for.
    found, _, seconds = watch([DONE], [Requests(10, 1)] * 4 + [Requests(500, 1)])
    assert (found.failure, seconds) == ("", 20)
    assert watch([DONE], [Requests(10, 1)])[0].failure.startswith("2 of 20 requests failed (10.0%)")


def test_an_error_rate_that_is_not_known_is_told(watch: Look) -> None:
    found, said, _ = watch([DONE], [Forbidden("cannot read the metrics of a: pods/proxy is forbidden")])
    assert found == Watched()
    assert said[-1] == "note: the error rate is not known: cannot read the metrics of a: pods/proxy is forbidden"
    assert watch([DONE])[1][-1] == "note: there were no requests, so the error rate is not known"
    assert watch([DONE], watch=Watch(60, 0, 0.01))[1] == []


def test_pods_whose_counts_make_no_sense_are_told(watch: Look) -> None:
    found, said, _ = watch([DONE], [Requests(-5, 0), Requests(50, 0)])
    assert found.failure == ""
    assert said[-1] == "0 of 100 requests failed"
    found, said, _ = watch([DONE], [Requests(-5, 0)])
    assert found == Watched()
    assert said[-1] == "note: the error rate is not known: 2 pods report impossible counts of requests"
    # The failures of the other pods count.
    found, _, _ = watch([DONE], [Requests(-5, 0), Requests(500, 50)] * 20)
    assert found.failure.startswith("50 of 500 requests failed (10.0%)")


def test_an_api_server_that_is_away_is_waited_for(watch: Look) -> None:
    away = Unreachable("no answer")
    found, said, _ = watch([STARTS, away, away, DONE])
    assert (found.failure, said.count("the API server does not respond, trying again: no answer")) == ("", 2)
    with pytest.raises(Unreachable):
        watch([away], watch=Watch(600, 20, 0.01))
