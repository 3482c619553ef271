"""Draws a curve with characters, for a terminal: at most ten rows, whatever the numbers are. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_ROWS = 7
"""Of the curve itself; a heading and the steps below it are two more."""
_WIDEST = 72
_NARROWEST = 8
"""Columns of the curve itself, below which it says nothing."""
_LABEL_ROOM = 4
"""A blank at each side of a label, the axis, and a blank at the end of a line."""

_Points = Sequence[tuple[int, float]]


def draw_curve(
    name: str, steps: Sequence[int], values: Sequence[float], last_step: int | None, width: int, *, is_plain: bool
) -> list[str]:
    """Return the lines of a curve; none where there are fewer than two steps, or no room.

    `last_step` is the run's: what a training that has diverged reports is no number. `is_plain` keeps to ASCII.
    """
    points = list(zip(steps, values, strict=True))
    if len(points) < 2:
        return []
    end = max(steps[-1], last_step or 0)
    low, high = min(values), max(values)
    labels = [_say(high), _say(low)] if high > low else [_say(high)]
    label_width = max(map(len, labels))
    columns = min(width - label_width - _LABEL_ROOM, _WIDEST)
    if columns < max(_NARROWEST, len(f"{end:,}")):
        return []
    heights = _place(_resample(points, end, columns), low, high)
    rows = _draw(heights, 1 if high == low else _ROWS, is_plain=is_plain)
    names = [labels[0], *[""] * (len(rows) - 2), labels[-1]] if len(rows) > 1 else labels
    axis = "|" if is_plain else "┤"
    lines = [f" {label:>{label_width}} {axis}{row}".rstrip() for label, row in zip(names, rows, strict=True)]
    diverged = [f" no finite {name} was reported after step {steps[-1]:,}"] if end > steps[-1] else []
    return [f"{name} by step", *lines, _draw_steps(steps[0], end, label_width, columns), *diverged]


def _say(value: float) -> str:
    return f"{value:.4g}"


def _draw_steps(begin: int, end: int, label_width: int, columns: int) -> str:
    first, last = f"{begin:,}", f"{end:,}"
    indent = " " * (label_width + 3)
    gap = columns - len(first) - len(last)
    return f"{indent}{first}{' ' * gap}{last}" if gap > 0 else f"{indent}{last:>{columns}}"


def _resample(points: _Points, end: int, columns: int) -> list[float | None]:
    """Return a value for each column up to the last point: the mean of its points, or one between its neighbours."""
    first = points[0][0]
    buckets: dict[int, list[float]] = {}
    for step, value in points:
        buckets.setdefault((step - first) * (columns - 1) // max(1, end - first), []).append(value)
    # Divided before they are added: the sum of two numbers may be too large for a number.
    filled = [(at, sum(value / len(bucket) for value in bucket)) for at, bucket in sorted(buckets.items())]
    values: list[float | None] = [None] * columns
    for at, value in filled:
        values[at] = value
    for (left, before), (right, after) in pairwise(filled):
        for at in range(left + 1, right):
            share = (at - left) / (right - left)
            values[at] = before * (1 - share) + after * share
    return values


def _place(values: Sequence[float | None], low: float, high: float) -> list[float | None]:
    """Return how high each value is, from 0 to 1."""
    # Halves, since the difference of two numbers may be too large for a number.
    span = high / 2 - low / 2
    return [None if value is None else (value / 2 - low / 2) / span if span else 0.0 for value in values]


def _draw(heights: Sequence[float | None], rows: int, *, is_plain: bool) -> list[str]:
    """Return the rows of the curve, the highest first: one character a column, and lines between them."""
    grid = [[" "] * len(heights) for _ in range(rows)]
    levels = [None if each is None else _level(each, rows) for each in heights]
    before: int | None = None
    for at, level in enumerate(levels):
        if level is None:
            before = None
            continue
        if is_plain:
            grid[level][at] = "*"
        elif before is None or before == level:
            grid[level][at] = "─"
        else:
            _turn(grid, at, before, level)
        before = level
    return ["".join(row) for row in grid]


def _level(height: float, rows: int) -> int:
    """Return the row, counted from the top."""
    return rows - 1 - round(min(1.0, max(0.0, height if math.isfinite(height) else 0.0)) * (rows - 1))


def _turn(grid: list[list[str]], at: int, before: int, level: int) -> None:
    """Draw a step from one row to another in one column."""
    falls = level > before
    grid[before][at] = "╮" if falls else "╯"
    grid[level][at] = "╰" if falls else "╭"
    for row in range(min(before, level) + 1, max(before, level)):
        grid[row][at] = "│"
