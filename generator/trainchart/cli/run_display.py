"""Shows a local run while it goes on, on stderr: a live table on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainchart.cli.output import print_note
from trainchart.local.observer import Observer, PodSnapshot, RunSnapshot
from trainchart.local.report import introduce_plan

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from trainchart.local.plan import LocalPlan

_SUMMARY_SECONDS = 10.0
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
"""Terminal sequences and control characters, which a program's line must not bring into a table."""


@contextmanager
def choose_display(*, quiet: bool) -> Iterator[Observer]:
    """Give the display that fits: none when quiet, a table on a terminal that can redraw, else lines."""
    if quiet:
        yield Silence()
    elif sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        with live_table() as table:
            yield table
    else:
        yield Lines()


class Silence:
    """Nothing but warnings: those say that the result may not be what was wanted."""

    def show_plan(self, plan: LocalPlan) -> None:
        for warning in plan.warnings:
            print_note(f"note: {warning}")

    def show_line(self, label: str, text: str) -> None:
        pass

    def show_event(self, text: str) -> None:
        pass

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        pass


class Lines:
    """Every line of every pod with its name before it, and a summary now and then."""

    def __init__(self) -> None:
        self._next_summary = 0.0

    def show_plan(self, plan: LocalPlan) -> None:
        for line in introduce_plan(plan):
            print_note(line)

    def show_line(self, label: str, text: str) -> None:
        print_note(f"[{label}] {text}")

    def show_event(self, text: str) -> None:
        print_note(f"* {text}")

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        if time.monotonic() < self._next_summary:
            return
        self._next_summary = time.monotonic() + _SUMMARY_SECONDS
        pods = " · ".join(f"{pod.label} {summarize_pod(pod)}" for pod in snapshot.pods)
        print_note(f"* {snapshot.phase}, {snapshot.elapsed_seconds:.0f} s: {pods}")


def summarize_pod(pod: PodSnapshot) -> str:
    """Return one pod in few words, for the line display."""
    parts = [pod.state]
    if pod.attempt > 1:
        parts.append(f"attempt {pod.attempt}")
    if pod.step is not None:
        parts.append(f"step {pod.step}")
    if pod.examples_per_second is not None:
        parts.append(f"{pod.examples_per_second:,.0f} examples/s")
    if pod.memory_mib is not None:
        parts.append(f"{pod.memory_mib:.0f} MiB")
    return " ".join(parts)


@contextmanager
def live_table() -> Iterator[LiveTable]:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        yield LiveTable(console, live)


class LiveTable:
    """One row per pod, redrawn with every snapshot; events scroll by above it. The lines are in the logs."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live

    def show_plan(self, plan: LocalPlan) -> None:
        for line in introduce_plan(plan):
            self._console.print(line, markup=False, highlight=False)

    def show_line(self, label: str, text: str) -> None:
        pass

    def show_event(self, text: str) -> None:
        from rich.text import Text

        # A styled text, not a styled print: that would colour the table that is redrawn with it.
        self._console.print(Text(text, style="yellow"))

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        self._live.update(draw_table(snapshot), refresh=True)


_STATE_STYLES = {"running": "green", "finished": "bold green", "failed": "bold red", "restarting": "yellow"}


def draw_table(snapshot: RunSnapshot) -> Table:
    """Return the table of all pods; a narrow terminal costs the last lines first."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=f"{snapshot.phase}, {snapshot.elapsed_seconds:.0f} s", title_justify="left", box=None, expand=True
    )
    rows = [_cells(pod) for pod in snapshot.pods]
    for column, heading in enumerate(_HEADINGS):
        width = max(len(cell) for cell in (heading, *(row[column] for row in rows)))
        table.add_column(heading, justify="left" if column < 2 else "right", no_wrap=True, min_width=width)
    table.add_column("last line", no_wrap=True, overflow="ellipsis", ratio=1)
    for pod, row in zip(snapshot.pods, rows, strict=True):
        state = Text(row[1], style=_STATE_STYLES.get(pod.state, ""))
        table.add_row(row[0], state, *row[2:], Text(_CONTROL.sub("", pod.last_line)))
    return table


_HEADINGS = ("pod", "state", "attempt", "step", "examples/s", "CPU %", "MiB")


def _cells(pod: PodSnapshot) -> tuple[str, ...]:
    numbers = (pod.attempt or None, pod.step, pod.examples_per_second, pod.cpu_percent, pod.memory_mib)
    return (pod.label, pod.state, *("" if number is None else f"{number:,.0f}" for number in numbers))
