"""A limit on the time of a whole call, and of a call that goes on."""

from __future__ import annotations

import itertools
import threading

import pytest

from trainchart.host.deadline import read_until, run_within


def test_endless_answer_ends_with_its_thread() -> None:
    is_over = threading.Event()

    def read(end: float) -> None:
        try:
            for _ in read_until(end, itertools.repeat(b"x")):
                pass
        finally:
            is_over.set()

    with pytest.raises(TimeoutError):
        run_within(0.05, read)
    assert is_over.wait(10)


def test_call_in_time_returns_its_result() -> None:
    assert run_within(10.0, lambda end: b"".join(read_until(end, [b"a", b"b"]))) == b"ab"
