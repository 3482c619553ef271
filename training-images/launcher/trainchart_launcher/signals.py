"""The launcher's own signals: forwarded to the program at once, remembered for the main loop, slept upon.

Forwarding happens in the handler itself, so that no slow write or file system can delay it; only the first request to
stop a task that the leading one needs to save is kept back for a while (leader_wait.py). A byte in a pipe wakes the
main loop, which leaves no gap between "is there a signal?" and "sleep until there is one".
"""

from __future__ import annotations

import os
import select
import signal
import time
from types import FrameType
from typing import Optional, Set

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
"""After one of these the program is expected to end, and is not started again."""
FORWARDED = (*STOP_SIGNALS, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Signal state of this process: which child to forward to, and whether a stop was requested."""

    def __init__(self) -> None:
        self.stop_signal = 0
        self.stopped_at = 0.0
        """time.monotonic() of the first request to stop."""
        self.forwarded: Set[int] = set()
        """What the present child was sent."""
        self.keeps_back_stop = False
        """Whether the first request to stop waits for `pass_on_stop`."""
        self.kept_back = 0
        """The request that waits."""
        self._child = 0
        self._undelivered = 0
        self._wake_read, self._wake_write = -1, -1

    def install(self) -> None:
        for number in FORWARDED:
            signal.signal(number, self._receive)
        # Without a handler of Python's, the end of a child would not wake the loop.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def attach(self, child: int) -> None:
        """Forward to `child` (leader of its own process group) from now on, and what came too early now."""
        self.forwarded = set()
        self._child = child
        if self._undelivered:
            self._forward(self._undelivered)
            self._undelivered = 0

    def detach(self) -> None:
        """Forward no more: call it before the child's number can belong to another process."""
        self._child = self.kept_back = 0

    def pass_on_stop(self) -> None:
        """Forward the request to stop that was kept back."""
        if self.kept_back and self._child:
            self._forward(self.kept_back)
        self.kept_back = 0

    def send_group(self, number: int) -> None:
        """Send a signal to the present child and its whole process group."""
        if self._child:
            send_to_group(self._child, number)

    def kill_group(self) -> None:
        """Kill the present child and its whole process group."""
        self.send_group(signal.SIGKILL)

    def wake(self) -> None:
        """End the main loop's sleep; for other threads."""
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:
            # Full of reasons to wake up.
            pass

    def wait(self, timeout_seconds: Optional[float]) -> None:
        """Sleep until a signal comes or the time is over."""
        if timeout_seconds is not None and timeout_seconds <= 0:
            return
        try:
            ready, _, _ = select.select([self._wake_read], [], [], timeout_seconds)
            if ready:
                os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        is_first_stop = number in STOP_SIGNALS and not self.stop_signal
        if is_first_stop:
            self.stop_signal = number
            self.stopped_at = time.monotonic()
        if self._child and is_first_stop and self.keeps_back_stop:
            self.kept_back = number
        elif self._child:
            self.kept_back = 0 if number in STOP_SIGNALS else self.kept_back
            self._forward(number)
        elif number in STOP_SIGNALS:
            self._undelivered = number

    def _forward(self, number: int) -> None:
        # To the program alone: its helpers must live until it has saved. Its group follows when it has ended.
        self.forwarded.add(number)
        try:
            os.kill(self._child, number)
        except ProcessLookupError:
            pass


def send_to_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False if it has no process left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # PermissionError: macOS answers so where only zombies are left.
        return False
    return True
