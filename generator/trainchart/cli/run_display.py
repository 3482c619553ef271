"""Shows a local run while it goes on, on stderr: lines above a table on a terminal, lines elsewhere, or nothing."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainchart.cli.output import print_note
from trainchart.cli.run_table import Outlook, Pace, describe_step, draw_run
from trainchart.errors import ToolError
from trainchart.local.noise import NoiseFilter
from trainchart.local.observer import Observer, PodSnapshot, RunSnapshot
from trainchart.local.report import introduce_plan
from trainchart.reports.curve_text import draw_curve
from trainchart.reports.metric_names import find_loss
from trainchart.reports.text import describe_seconds
from trainchart_runtime.log_text import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from trainchart.local.plan import LocalPlan
    from trainchart.reports.curves import Curve

_SUMMARY_SECONDS = 10.0
_USUAL_WIDTH = 80
"""Of a terminal that does not say its own."""
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
FOLDED = "… TensorFlow's own lines are hidden: --verbose shows them, and the logs contain them"
_POD_COLOURS = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_magenta", "bright_blue")


@dataclass(frozen=True)
class DisplayOptions:
    quiet: bool = False
    table: bool = True
    verbose: bool = False
    """Show TensorFlow's own lines, too."""
    only: tuple[str, ...] = ()
    """Roles or pods whose lines are shown; empty for all."""
    color: bool = True


@contextmanager
def choose_display(options: DisplayOptions) -> Iterator[Observer]:
    """Give the display that fits: none when quiet, a table on a terminal that can redraw, else lines."""
    if options.quiet:
        yield Silence()
    elif options.table and sys.stderr.isatty() and not _is_dumb():
        with _live_table(options) as table:
            yield table
    else:
        yield Lines(LineChoice(options))


def _is_dumb() -> bool:
    return os.environ.get("TERM", "dumb") == "dumb"


def show_curve(curves: Sequence[Curve], last_step: int | None) -> None:
    """Draw the loss by step on a terminal; nothing elsewhere, or where a run has reported no loss."""
    by_name = {curve.name: curve for curve in curves}
    loss = find_loss(by_name)
    if loss is None or not sys.stderr.isatty():
        return
    steps, values = by_name[loss].steps, by_name[loss].values
    is_plain = _is_dumb() or "utf" not in sys.stderr.encoding.lower()
    width = os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_WIDTH
    for line in draw_curve(loss, steps, values, last_step, width, is_plain=is_plain):
        print_note(line)


class LineChoice:
    """Chooses the lines to show: those of the pods asked for, with TensorFlow's own lines folded into one."""

    def __init__(self, options: DisplayOptions) -> None:
        self._options = options
        self._filters: dict[str, NoiseFilter] = {}
        self._has_folded = False

    def check(self, plan: LocalPlan) -> None:
        """Refuse a role or pod that the run does not have."""
        roles = list(dict.fromkeys(pod.role for pod in plan.pods))
        labels = [pod.label for pod in plan.pods]
        for name in self._options.only:
            if name not in (*roles, *labels):
                raise ToolError(
                    f"--only {name}: the run has no such role or pod",
                    hint=f"roles: {', '.join(roles)}; pods: {', '.join(labels)}",
                )

    def choose(self, label: str, lines: Sequence[str]) -> Iterator[str]:
        """Yield what is to be shown of the next lines of a pod."""
        only = self._options.only
        if only and label not in only and label.rpartition("-")[0] not in only:
            return
        noise = self._filters.setdefault(label, NoiseFilter())
        for line in lines:
            if self._options.verbose or not noise.is_noise(line):
                yield line
            elif not self._has_folded:
                self._has_folded = True
                yield FOLDED


class Silence:
    """Nothing but warnings: those say that the result may not be what was wanted."""

    def show_plan(self, plan: LocalPlan) -> None:
        for warning in plan.warnings:
            print_note(f"note: {warning}")

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        pass

    def show_event(self, text: str) -> None:
        pass

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        pass


class _Progress:
    """How far the training is, from one snapshot to the next."""

    def __init__(self) -> None:
        self.last_step: int | None = None
        self._pace = Pace()

    def look(self, snapshot: RunSnapshot) -> Outlook | None:
        self._pace.note(snapshot.elapsed_seconds, snapshot.step)
        return None if self.last_step is None else Outlook(self.last_step, self._pace.seconds_left(self.last_step))


class Lines:
    """Every line of every pod with its name before it, and a summary now and then."""

    def __init__(self, choice: LineChoice) -> None:
        self._choice = choice
        self._progress = _Progress()
        self._next_summary = 0.0

    def show_plan(self, plan: LocalPlan) -> None:
        self._choice.check(plan)
        self._progress.last_step = plan.last_step
        for line in introduce_plan(plan):
            print_note(line)

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        for line in self._choice.choose(label, lines):
            print_note(f"[{label}] {clean(line)}")

    def show_event(self, text: str) -> None:
        print_note(f"* {text}")

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        outlook = self._progress.look(snapshot)
        if time.monotonic() < self._next_summary:
            return
        self._next_summary = time.monotonic() + _SUMMARY_SECONDS
        phase = ", ".join(
            words
            for words in (snapshot.phase, describe_seconds(snapshot.elapsed_seconds), describe_step(snapshot, outlook))
            if words
        )
        print_note(f"* {phase}: {' · '.join(f'{pod.label} {summarize_pod(pod)}' for pod in snapshot.pods)}")


def summarize_pod(pod: PodSnapshot) -> str:
    """Return one pod in few words, for the line display."""
    parts = [pod.state]
    if pod.attempt > 1:
        parts.append(f"attempt {pod.attempt}")
    if pod.step is not None:
        parts.append(f"step {pod.step}")
    if pod.loss is not None:
        parts.append(f"loss {pod.loss:.4g}")
    if pod.examples_per_second is not None:
        parts.append(f"{pod.examples_per_second:,.0f} examples/s")
    if pod.memory_mib is not None:
        parts.append(f"{pod.memory_mib:.0f} MiB")
    return " ".join(parts)


@contextmanager
def _live_table(options: DisplayOptions) -> Iterator[LiveTable]:
    from rich.console import Console
    from rich.live import Live

    # None leaves it to NO_COLOR.
    console = Console(stderr=True, no_color=None if options.color else True)
    with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        yield LiveTable(console, live, LineChoice(options))


class LiveTable:
    """The lines of the pods scroll by, above a table with one row per pod that is redrawn with every snapshot."""

    def __init__(self, console: Console, live: Live, choice: LineChoice) -> None:
        self._console = console
        self._live = live
        self._choice = choice
        self._progress = _Progress()
        self._colours: dict[str, str] = {}

    def show_plan(self, plan: LocalPlan) -> None:
        from rich.text import Text

        self._choice.check(plan)
        self._progress.last_step = plan.last_step
        self._colours = {pod.label: _POD_COLOURS[at % len(_POD_COLOURS)] for at, pod in enumerate(plan.pods)}
        self._print([Text(line) for line in introduce_plan(plan)])

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        from rich.text import Text

        chosen = list(self._choice.choose(label, lines))
        prefix = Text(f"[{label}] ", style=self._colours.get(label, ""))
        self._print([prefix + read_line(line) for line in chosen])

    def show_event(self, text: str) -> None:
        from rich.text import Text

        # A styled text, not a styled print: that would colour the table that is redrawn with it.
        self._print([Text(f"* {text}", style="yellow")])

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        outlook = self._progress.look(snapshot)
        size = self._console.size
        self._live.update(draw_run(snapshot, outlook, size.width, size.height), refresh=True)

    def _print(self, lines: Sequence[Text]) -> None:
        """Print lines above the table, which is drawn again with each call."""
        from rich.text import Text

        if lines:
            # The terminal wraps what is too long, so that it can be copied as one line.
            self._console.print(Text("\n").join(lines), soft_wrap=True)


def read_line(line: str) -> Text:
    """Return a program's line as a terminal may show it: with its colours, without what else steers a terminal."""
    from rich.text import Text

    parts = _COLOUR.split(line)
    return Text.from_ansi("".join(part if number % 2 else clean(part) for number, part in enumerate(parts)))
