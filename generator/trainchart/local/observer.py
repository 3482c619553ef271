"""What a running local run reports to its watcher, as plain data, and the shape of such a watcher.

No printing here: the command line brings its own observers.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    metrics: Mapping[str, float] = field(default_factory=dict)


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


_CLOSED = (errno.EPIPE, errno.EIO)
"""Writing to a pipe that is not read any more, and to a terminal that is gone."""


class ClosableObserver:
    """Hands everything on to an observer, and calls `note_closed` where that can print no more."""

    def __init__(self, observer: Observer, note_closed: Callable[[], None]) -> None:
        self._observer = observer
        self._note_closed = note_closed

    def show_plan(self, plan: LocalPlan) -> None:
        with self._noting():
            self._observer.show_plan(plan)

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        with self._noting():
            self._observer.show_lines(label, lines)

    def show_event(self, text: str) -> None:
        with self._noting():
            self._observer.show_event(text)

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        with self._noting():
            self._observer.show_snapshot(snapshot)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _CLOSED:
                raise
            self._note_closed()
