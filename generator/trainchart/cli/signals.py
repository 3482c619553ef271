"""How commands that must clean up end for a signal."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

from trainchart.stop_signals import StopRequests


def end_in_order() -> None:
    """From now on, end for a signal as for Ctrl-C, so that what was begun is cleaned up."""
    requests = StopRequests()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if requests.is_new(time.monotonic()):
            sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup ignores the end of the terminal.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
