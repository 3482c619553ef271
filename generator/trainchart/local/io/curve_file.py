"""Keeps the scalars of a local run by step in its folder, and reads them: one JSON document a line, bounded.

Written by the one process that supervises the run. A file that came from others may hold anything: what is not a point
is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainchart.json_documents import parse_json
from trainchart.reports.curves import POINTS_KEPT, Point, make_point, thin
from trainchart_runtime.io.files import open_regular
from trainchart_runtime.progress import parse_metrics, parse_number, parse_whole

CURVES_FILE = "curves.jsonl"
_FILE_LIMIT = 16 * 1024 * 1024
"""Bytes that are read."""


class CurveFile:
    """Adds points to a run's file; where that would grow beyond its bounds, every second point goes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / CURVES_FILE
        self._points = read_points(folder)
        self._tasks = {point.task for point in self._points}

    def add(self, task: str, at: float, step: int | None, values: Mapping[str, float], speed: float | None) -> None:
        """Keep what a task reports; of the step that it has reported last, only what is new: a final evaluation."""
        point = make_point(self._points, task, at, step, values, speed)
        if point is None:
            return
        self._points.append(point)
        self._tasks.add(task)
        with suppress(OSError):  # a disk that is full must not end a training
            if len(self._points) > 2 * POINTS_KEPT * len(self._tasks):
                self._points = thin(self._points)
                self._replace()
            else:
                self._append(point)

    def _append(self, point: Point) -> None:
        with os.fdopen(open_regular(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "w") as file:
            file.write(_dump(point))

    def _replace(self) -> None:
        temporary = self._path.with_name(f".{CURVES_FILE}.new")
        temporary.unlink(missing_ok=True)
        temporary.touch(exist_ok=False)
        temporary.write_text("".join(map(_dump, self._points)))
        temporary.replace(self._path)


def read_points(folder: Path) -> list[Point]:
    """Return the points of the run in `folder`, in the order in which they were reported."""
    try:
        with os.fdopen(open_regular(folder / CURVES_FILE), "rb") as file:
            lines = file.read(_FILE_LIMIT).splitlines()
    except OSError:
        return []
    return list(_parse(lines))


def _parse(lines: list[bytes]) -> Iterator[Point]:
    for line in lines:
        with suppress(ValueError, AttributeError):
            document: Mapping[str, Any] = parse_json(line)
            step, at = parse_whole(document.get("step")), parse_number(document.get("at"))
            if step is not None:
                yield Point(str(document.get("task", "")), at or 0.0, step, parse_metrics(document.get("values")))


def _dump(point: Point) -> str:
    return json.dumps({"task": point.task, "at": point.at, "step": point.step, "values": dict(point.values)}) + "\n"
