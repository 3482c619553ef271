"""Take times: contenders take turns, so that a busy moment of the machine hits both, and the median counts."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPEATS = 7


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, and the mark where there is one."""

    what: str
    value: float
    unit: str
    mark: float | None = None
    lowest: bool = False
    """The mark is the least that is wanted, not the most."""
    note: str = ""

    @property
    def is_missed(self) -> bool:
        if self.mark is None:
            return False
        return self.value < self.mark if self.lowest else self.value > self.mark


def time_by_turns(contenders: Mapping[str, Callable[[], object]], repeats: int = REPEATS) -> dict[str, float]:
    """Return the median seconds of each contender; one round before is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(repeats + 1):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def find_median_limits(ordered: Sequence[float]) -> tuple[float, float]:
    """Return between which of at least six measured values the true median lies in 95 of 100 cases."""
    # The number of values below the true median is binomial: half of them, with a deviation of half their root.
    below = int(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5)
    return ordered[below], ordered[-1 - below]


def program(
    argv: Sequence[str | Path], cwd: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Callable[[], object]:
    """Return a contender that runs `argv` to its end; it must succeed."""
    # A Python that may not keep what it compiled compiles all of its modules at each start.
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run(
            [str(part) for part in argv],
            cwd=cwd,
            env=kept,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    return run
