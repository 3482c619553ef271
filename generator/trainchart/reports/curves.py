"""The scalars of a run by step: what its leading tasks and its evaluator reported, bounded. Pure.

A local run keeps points in its folder (local/io/curve_file.py). The record of a release has the last point only, so its
points are those that a reader has seen.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainchart_runtime.progress import METRICS_KEPT

POINTS_KEPT = 2000
"""Of one task. Twice as many are thinned to every second one."""
POINTS_SHOWN = 400
CURVES_SHOWN = 24
_NAMES_KEPT = METRICS_KEPT + 1
"""Of one task, the first ones: as many as one report has, and its speed. A program may invent names at every step."""
SPEED = "examples/s"


@dataclass(frozen=True)
class Point:
    """What one task reported at one step."""

    task: str
    at: float
    """Unix seconds."""
    step: int
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """One scalar over steps, which rise."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


def make_point(
    points: Sequence[Point], task: str, at: float, step: int | None, values: Mapping[str, float], speed: float | None
) -> Point | None:
    """Return what is to be kept of a task's report, given the points that are; None where all of it is.

    Of the step that the task has reported last, that is what is new: a final evaluation reports at the same step.
    """
    if step is None:
        return None
    # Thousands of points share each name.
    reported = {sys.intern(name): value for name, value in values.items()}
    reported |= {} if speed is None else {SPEED: speed}
    latest = next((point.values for point in reversed(points) if point.task == task), {})
    if not reported.keys() <= latest.keys():
        names = (name for point in points if point.task == task for name in point.values)
        kept = {*itertools.islice(dict.fromkeys(itertools.chain(names, reported)), _NAMES_KEPT)}
        reported = {name: value for name, value in reported.items() if name in kept}
    known: set[str] | None = None
    for point in reversed(points):
        if point.task != task:
            continue
        if point.step != step:
            break
        known = {*(known or ()), *point.values}
    if known is None:
        return Point(task, at, step, reported)
    news = {name: value for name, value in reported.items() if name not in known}
    return Point(task, at, step, news) if news else None


def thin(points: Sequence[Point]) -> list[Point]:
    """Return every second point of each task, and its last one."""
    counts: dict[str, int] = {}
    last = {point.task: index for index, point in enumerate(points)}
    kept = []
    for index, point in enumerate(points):
        counts[point.task] = counts.get(point.task, -1) + 1
        if counts[point.task] % 2 == 0 or last[point.task] == index:
            kept.append(point)
    return kept


def make_curves(points: Iterable[Point], main_task: str = "") -> tuple[Curve, ...]:
    """Return the curves of all scalars, at most CURVES_SHOWN with POINTS_SHOWN points each.

    Those of `main_task` have the scalar's name, the others begin with their task. A task that went back to an earlier
    step did those steps again: the later points count.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        prefix = "" if point.task == main_task else f"{point.task} "
        for name, value in point.values.items():
            series = found.setdefault(f"{prefix}{name}", [])
            while series and series[-1][0] >= point.step:
                series.pop()
            series.append((point.step, value))
    names = sorted(found, key=lambda name: (name == SPEED, "loss" not in name, len(name.split(" ")), name))
    return tuple(_shorten(name, found[name]) for name in names[:CURVES_SHOWN])


def _shorten(name: str, series: Sequence[tuple[int, float]]) -> Curve:
    stride = -(-len(series) // POINTS_SHOWN)
    # Counted from the end, so that the newest point is always there.
    shown = series[::-1][:: max(1, stride)][::-1]
    return Curve(name, tuple(step for step, _ in shown), tuple(value for _, value in shown))
