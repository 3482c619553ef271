"""A limit on the time of a whole call: the time-out of a socket starts again with every byte that a server sends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def run_within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what `call` returns, or raise what it raises.

    Raises:
        TimeoutError: it takes longer. No thread can be stopped, so the call goes on; it does not keep the process.
    """
    if seconds <= 0:
        raise TimeoutError
    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future.result(seconds)
