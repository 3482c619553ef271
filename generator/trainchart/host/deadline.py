"""A limit on the time of a whole call: the time-out of a socket starts again with every byte that a server sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def run_within(seconds: float, call: Callable[[float], Result]) -> Result:
    """Return what `call` returns, or raise what it raises.

    No thread can be stopped: the call gets the time.monotonic() at which it must end by itself. A call that continues
    does not keep the process alive.

    Raises:
        TimeoutError: it takes longer.
    """
    if seconds <= 0:
        raise TimeoutError
    future: Future[Result] = Future()
    end = time.monotonic() + seconds

    def work() -> None:
        try:
            future.set_result(call(end))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future.result(seconds)


def read_until(end: float, parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of an answer that come before time.monotonic() is `end`.

    Raises:
        TimeoutError: they go on after that.
    """
    for part in parts:
        if time.monotonic() >= end:
            raise TimeoutError
        yield part
