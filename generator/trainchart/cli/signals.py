"""How commands that must clean up end for a signal."""

from __future__ import annotations

import math
import signal
import sys
import time
from types import FrameType

_ONE_REQUEST_SECONDS = 1.0
"""Signals this close are one request: `timeout` and other wrappers signal the process, then its group."""


def end_in_order() -> None:
    """From now on, end for a signal as for Ctrl-C, so that what was begun is cleaned up."""

    asked_at = -math.inf

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal asked_at
        del frame
        now = time.monotonic()
        if now - asked_at >= _ONE_REQUEST_SECONDS:
            asked_at = now
            sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup ignores the end of the terminal.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
