"""Estimates when a training will reach its last step, from the steps seen so far. Pure."""

from __future__ import annotations

from collections import deque

_WINDOW_SECONDS = 120.0
"""Long enough for several reports, short enough to notice that the speed has changed."""


class Pace:
    """The steps reported lately, and when."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._now = 0.0

    def note(self, seconds: float, step: int | None) -> None:
        """Take note of the step at a time in seconds since the start of the run."""
        self._now = seconds
        if step is None or (self._seen and step == self._seen[-1][1]):
            return
        if self._seen and step < self._seen[-1][1]:
            self._seen.clear()  # a restart went back to a checkpoint
        self._seen.append((seconds, step))
        while len(self._seen) > 2 and seconds - self._seen[0][0] > _WINDOW_SECONDS:
            self._seen.popleft()

    def seconds_left(self, last_step: int) -> float | None:
        """Return how long the rest takes at this pace; None before two steps were seen."""
        if len(self._seen) < 2:
            return None
        (began, first), (_, step) = self._seen[0], self._seen[-1]
        return max(0, last_step - step) * (self._now - began) / (step - first)
