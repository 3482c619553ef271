"""Which signals are one request to stop: `timeout` and others signal a process, and its group right after. Pure."""

from __future__ import annotations

import math

_ONE_REQUEST_SECONDS = 1.0


class StopRequests:
    """Tells requests apart: a signal within a second of the one before it is the same request."""

    def __init__(self) -> None:
        self._arrived_at = -math.inf

    def is_new(self, now: float) -> bool:
        """Say whether a signal that arrives now, in seconds of time.monotonic(), is a request of its own."""
        before, self._arrived_at = self._arrived_at, now
        return now - before >= _ONE_REQUEST_SECONDS
