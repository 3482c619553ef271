"""Draws the table of a local run that goes on: a line of progress above a row per pod, fitted to the terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainchart.local.observer import PodSnapshot, RunSnapshot
from trainchart.reports.text import describe_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_STATE_STYLES = {"running": "green", "finished": "bold green", "failed": "bold red", "restarting": "yellow"}
_FEWEST_ROWS = 3
_NARROWEST_BAR = 10
_GAP = 2
"""Spaces between two columns."""


@dataclass(frozen=True)
class Outlook:
    """How far the training is, and what is left."""

    last_step: int
    seconds_left: float | None


def describe_step(snapshot: RunSnapshot, outlook: Outlook | None) -> str:
    """Return the step in words, such as "400/1,000 steps, 40%, 1 min left"; empty where no pod has reported one."""
    if snapshot.step is None:
        return ""
    if outlook is None:
        return f"step {snapshot.step:,}"
    share = min(100, 100 * snapshot.step // outlook.last_step)
    left = "" if outlook.seconds_left is None else f", {describe_seconds(outlook.seconds_left)} left"
    return f"{snapshot.step:,}/{outlook.last_step:,} steps, {share}%{left if snapshot.step < outlook.last_step else ''}"


def draw_run(snapshot: RunSnapshot, outlook: Outlook | None, width: int, height: int) -> RenderableType:
    """Return what stays at the bottom of a terminal: at most half of its height, and as much as its width holds."""
    from rich.console import Group

    rows = max(_FEWEST_ROWS, height // 2 - 3)
    pods, hidden = _choose_pods(snapshot.pods, rows)
    parts: list[RenderableType] = [_draw_progress(snapshot, outlook, width), _draw_pods(pods, width)]
    if hidden:
        parts.append(f"… and {_count_states(hidden)}")
    return Group(*parts)


def _draw_progress(snapshot: RunSnapshot, outlook: Outlook | None, width: int) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    phase = f"{snapshot.phase}, {describe_seconds(snapshot.elapsed_seconds)}"
    words = describe_step(snapshot, outlook)
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True)
    room = width - len(phase) - len(words) - _GAP
    if snapshot.step is None or outlook is None or room < _NARROWEST_BAR:
        for line in (f"{phase}, {words}" if words else phase,) if room >= 0 else (phase, words):
            grid.add_row(line)
        return grid
    grid.add_column(ratio=1)
    grid.add_column(no_wrap=True)
    grid.add_row(phase, ProgressBar(total=outlook.last_step, completed=snapshot.step), words)
    return grid


def _choose_pods(pods: Sequence[PodSnapshot], rows: int) -> tuple[list[PodSnapshot], list[PodSnapshot]]:
    """Return the pods to show, in their order, and the others; pods that run as they should give way first."""
    if len(pods) <= rows:
        return list(pods), []
    by_interest = sorted(range(len(pods)), key=lambda index: (pods[index].state in ("running", "finished"), index))
    shown = set(by_interest[: rows - 1])
    return [pods[i] for i in sorted(shown)], [pods[i] for i in range(len(pods)) if i not in shown]


def _count_states(pods: Sequence[PodSnapshot]) -> str:
    states = [pod.state for pod in pods]
    return ", ".join(f"{states.count(state)} more {state}" for state in dict.fromkeys(states))


@dataclass(frozen=True)
class _Column:
    heading: str
    cell: Callable[[PodSnapshot], str]
    rank: int
    """A narrow terminal loses the columns of the highest rank first."""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


_COLUMNS = (
    _Column("pod", lambda pod: pod.label, 0),
    _Column("state", lambda pod: pod.state, 1),
    _Column("attempt", lambda pod: _number(pod.attempt or None), 5),
    _Column("step", lambda pod: _number(pod.step), 2),
    _Column("loss", lambda pod: "" if pod.loss is None else f"{pod.loss:.4g}", 3),
    _Column("examples/s", lambda pod: _number(pod.examples_per_second), 4),
    _Column("CPU %", lambda pod: _number(pod.cpu_percent), 6),
    _Column("MiB", lambda pod: _number(pod.memory_mib), 7),
)


def _draw_pods(pods: Sequence[PodSnapshot], width: int) -> Table:
    from rich.table import Table
    from rich.text import Text

    columns = _fit_columns(pods, width)
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify="left" if column.rank < 2 else "right", no_wrap=True)
    for pod in pods:
        cells = [column.cell(pod) for column in columns]
        table.add_row(cells[0], *(Text(cell, style=_STATE_STYLES.get(cell, "")) for cell in cells[1:]))
    return table


def _fit_columns(pods: Sequence[PodSnapshot], width: int) -> list[_Column]:
    columns = list(_COLUMNS)
    while len(columns) > 2 and sum(_column_width(column, pods) + _GAP for column in columns) > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    return columns


def _column_width(column: _Column, pods: Sequence[PodSnapshot]) -> int:
    return max(len(column.heading), *(len(column.cell(pod)) for pod in pods))


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
