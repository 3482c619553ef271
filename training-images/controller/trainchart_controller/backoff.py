"""How long to wait before the next try."""

from __future__ import annotations

from trainchart_controller.api import Refused

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 15.0
LONGEST_ASKED_SECONDS = 300.0
"""A server that asks for more, such as a proxy that is being repaired, may work again earlier."""


class Backoff:
    """Waits that double with every failure in a row."""

    def __init__(self, first_seconds: float = FIRST_SECONDS) -> None:
        self._first = first_seconds
        self._next = first_seconds

    def fail(self, error: Exception) -> float:
        """Return the seconds to wait after `error`; never less than the server asks for, within reason."""
        wait, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return max(wait, min(error.retry_after, LONGEST_ASKED_SECONDS)) if isinstance(error, Refused) else wait

    def succeed(self) -> None:
        self._next = self._first
