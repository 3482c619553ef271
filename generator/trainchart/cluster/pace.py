"""How long steps take, and whether they take far longer than before. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from trainchart.reports.report import Slowdown
from trainchart_runtime.run.leader import MARK_SECONDS, name_program
from trainchart_runtime.run.state import RUNNING, RunState, StepMark

_SLOWER = 3.0
"""Times as long as usual, which no evaluation in between explains."""


class _Stretch(NamedTuple):
    """A time in which one program made some steps."""

    began: float
    ended: float
    steps: int

    @property
    def pace(self) -> float:
        """Seconds per step."""
        return (self.ended - self.began) / self.steps


def find_pace(state: RunState, starts: Sequence[float] = ()) -> float:
    """Return the seconds that a step takes now, its share of pauses included; 0 where it is not known.

    `starts` are the Unix times at which its containers started; it waited before each of them.
    """
    stretches = _list_stretches(state, starts)
    return stretches[-1].pace if stretches else _find_average(state)


def find_slowdown(state: RunState, starts: Sequence[float] = ()) -> Slowdown | None:
    """Return since when steps take far longer than usual; None where they do not, or for less than two minutes."""
    stretches = _list_stretches(state, starts)
    # Not the best: a program may report a first step before it restores a later one.
    usual = sorted(each.pace for each in stretches)[1] if len(stretches) > 1 else 0.0
    slow = list(itertools.takewhile(lambda each: each.pace >= _SLOWER * usual, reversed(stretches)))
    if not usual or not slow or slow[0].ended - slow[-1].began < 2 * MARK_SECONDS:
        return None
    return Slowdown(slow[-1].began, usual)


def _list_stretches(state: RunState, starts: Sequence[float]) -> list[_Stretch]:
    """Return the times in which it made steps without a death or start, each of a minute or more, the oldest first."""
    points, last = [each for each in state.marks if each.at > 0], state.progress
    if points and last is not None and last.step is not None and last.at > points[-1].at:
        now = StepMark(last.at, last.step, name_program(last.uid, last.attempt))
        is_short = now.at - points[-1].at < MARK_SECONDS and len(points) > 1
        if now.program == points[-1].program:
            points = [*(points[:-1] if is_short and points[-2].program == now.program else points), now]
    # A program may begin again under the same name, and its peers wait until a task that died is back.
    breaks = [*(each.at for each in state.incidents), *starts]
    return [
        _Stretch(earlier.at, later.at, later.step - earlier.step)
        for earlier, later in itertools.pairwise(points)
        if earlier.program == later.program and later.step > earlier.step and later.at - earlier.at >= MARK_SECONDS
        if not any(earlier.at < at <= later.at for at in breaks)
    ]


def _find_average(state: RunState) -> float:
    """Return it of the whole run, of whose steps too little is known."""
    last, first = state.progress, state.first_step
    began = next((each.at for each in state.history if each.phase == RUNNING), 0.0)
    if last is None or last.step is None or first is None or last.step <= first or not 0 < began < last.at:
        return 0.0
    return (last.at - began) / (last.step - first)
