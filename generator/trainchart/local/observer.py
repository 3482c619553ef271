"""What a running local run tells whoever watches it, as plain data, and the shape of such a watcher.

No printing here: the command line brings its own observers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trainchart.local.plan import LocalPlan


@dataclass(frozen=True)
class PodSnapshot:
    """One pod at one moment; None means not known (yet)."""

    label: str
    role: str
    state: str
    attempt: int
    step: int | None
    examples_per_second: float | None
    cpu_percent: float | None
    memory_mib: float | None
    last_line: str


@dataclass(frozen=True)
class RunSnapshot:
    phase: str
    elapsed_seconds: float
    pods: tuple[PodSnapshot, ...]


class Observer(Protocol):
    """Is told everything, always from the supervisor's thread."""

    def show_plan(self, plan: LocalPlan) -> None:
        """The run is about to start."""

    def show_line(self, label: str, text: str) -> None:
        """A pod wrote a line."""

    def show_event(self, text: str) -> None:
        """Something happened to the run: a restart, a signal, a change of phase."""

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        """The state of all pods, about once a second."""
