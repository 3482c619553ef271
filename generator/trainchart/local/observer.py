"""What a running local run tells whoever watches it, as plain data, and the shape of such a watcher.

No printing here: the command line brings its own observers.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    loss: float | None


@dataclass(frozen=True)
class RunSnapshot:
    phase: str
    elapsed_seconds: float
    step: int | None
    """The last step of the pods that decide."""
    pods: tuple[PodSnapshot, ...]


class Observer(Protocol):
    """Is told everything, always from the supervisor's thread."""

    def show_plan(self, plan: LocalPlan) -> None:
        """The run is about to start."""

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        """A pod wrote lines."""

    def show_event(self, text: str) -> None:
        """Something happened to the run: a restart, a signal, a change of phase."""

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        """The state of all pods, about once a second."""
