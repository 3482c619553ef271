"""A polite end: SIGTERM and Ctrl-C ask the training to save and leave, instead of killing it."""

from __future__ import annotations

import concurrent.futures
import signal
import threading
import time
from types import FrameType
from typing import Any

WAIT_SECONDS = 5.0
"""How long a stop waits for the steps under way, which may wait for workers that are gone."""
_POLL_SECONDS = 0.2


class StopRequest:
    """Remembers the signal that asked this process to stop."""

    def __init__(self, grace_seconds: int) -> None:
        self._asked = threading.Event()
        self._grace_seconds = grace_seconds
        self.exit_code = 0

    def listen(self) -> None:
        """Start to listen. Until then the signals end the process at once, which is right: nothing is lost."""
        signal.signal(signal.SIGTERM, self._remember)
        signal.signal(signal.SIGINT, self._remember)

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    def wait(self, steps: concurrent.futures.Future[Any]) -> bool:
        """Wait for `steps`, which another thread does, so that signals reach this one; return whether they are done.

        When the process is asked to stop, they have WAIT_SECONDS left.
        """
        deadline = None
        while not steps.done():
            concurrent.futures.wait([steps], timeout=_POLL_SECONDS)
            if self.is_asked:
                deadline = deadline or time.monotonic() + WAIT_SECONDS
                if time.monotonic() > deadline:
                    return False
        return True

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self.exit_code = 128 + number
        self._asked.set()
        # If saving hangs (a ps that vanished silently), SIGALRM's default action ends the process in time.
        signal.alarm(max(1, self._grace_seconds - 2))
