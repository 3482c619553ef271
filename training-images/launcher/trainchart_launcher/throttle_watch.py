"""How much of the last minute the kernel has throttled this container for its CPU limit.

A counter of the kernel is compared from one look to the next, so nothing is measured where no one asks for the status:
the run controller does so every ten seconds.
"""

from __future__ import annotations

import time
from typing import List, Optional, Tuple

from trainchart_launcher.cgroup import read_cpu_periods
from trainchart_runtime.throttling import Throttling

_LEAST_SECONDS = 60.0
"""A program that starts, loads or saves may well be at its limit for less."""
_MOST_SECONDS = 120.0
_PAUSE_SECONDS = 5.0
"""Between two looks that are kept."""


class ThrottleWatch:
    """Remembers the looks of the last two minutes."""

    def __init__(self) -> None:
        self._looks: List[Tuple[float, int]] = []
        """(monotonic time, throttled periods), oldest first."""

    def measure(self) -> Optional[Throttling]:
        """Return how the container was throttled; None without a CPU limit, or where the first look is too recent."""
        now, seen = time.monotonic(), read_cpu_periods()
        if seen is None:
            return None
        looks = [each for each in self._looks if now - each[0] <= _MOST_SECONDS and each[1] <= seen.throttled]
        before = next((each for each in reversed(looks) if now - each[0] >= _LEAST_SECONDS), None)
        if not looks or now - looks[-1][0] >= _PAUSE_SECONDS:
            looks.append((now, seen.throttled))
        self._looks = looks
        if before is None:
            return None
        # Of the whole time, and not of the periods in which the program wanted to run, which may be few.
        share = (seen.throttled - before[1]) * seen.seconds / (now - before[0])
        return Throttling(min(share, 1.0), seen.limit)
