"""Reads the logs that role_log.py keeps of a local run: merged by time, from a moment on, or followed.

Reads only; the files may grow and rotate meanwhile.
"""

from __future__ import annotations

import heapq
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from trainchart.local.io.role_log import MAX_BYTES, MAX_LINE_BYTES
from trainchart.reports.log_line import LogLine
from trainchart_runtime.io.files import SpecialFileError, open_regular

_POLL_SECONDS = 0.2
_LINE_LIMIT = MAX_LINE_BYTES + 64
"""A line with its stamp. A file that a program has put there, or that came with others, may have longer ones."""
_TAIL_LIMIT = 2 * MAX_BYTES
"""Bytes of a growing log that are read at once; of a larger one, which no run writes, the last ones."""


def stamp_of(seconds: float) -> str:
    """Return a time in Unix seconds as lines carry it; empty, so before all others, for one that makes no sense."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return ""


def read_lines(logs: Mapping[str, Path]) -> Iterator[LogLine]:
    """Yield the lines of all logs (label to file), oldest first."""
    return heapq.merge(*(_read_pod(label, path) for label, path in sorted(logs.items())))


def follow_lines(logs: Mapping[str, Path], is_over: Callable[[], bool], last: int | None = None) -> Iterator[LogLine]:
    """Yield the `last` lines there are (None: all), then new ones as they come, until `is_over`.

    They are merged within each look.
    """
    tails = [_Tail(label, path) for label, path in sorted(logs.items())]
    rotated = list(read_lines({label: path.with_name(path.name + ".1") for label, path in logs.items()}))
    present = heapq.merge(rotated, sorted(line for tail in tails for line in tail.read()))
    yield from present if last is None else deque(present, maxlen=last)
    while True:
        # Asked before reading: what was written before the end is then surely read.
        was_over = is_over()
        yield from sorted(line for tail in tails for line in tail.read())
        if was_over:
            return
        time.sleep(_POLL_SECONDS)


def _read_pod(label: str, path: Path) -> Iterator[LogLine]:
    for part in (path.with_name(path.name + ".1"), path):
        try:
            with _open(part) as file:
                while raw := file.readline(_LINE_LIMIT):
                    yield _parse(label, raw)
        except FileNotFoundError:
            continue


def _open(path: Path) -> BinaryIO:
    """Open a log. Raises FileNotFoundError where there is none, but a link, or a pipe or device that may never end."""
    try:
        return os.fdopen(open_regular(path), "rb")
    except (SpecialFileError, IsADirectoryError, NotADirectoryError) as error:
        raise FileNotFoundError(path) from error


def _parse(label: str, raw: bytes) -> LogLine:
    stamp, _, text = raw.rstrip(b"\n").decode(errors="replace").partition(" ")
    return LogLine(stamp, label, text)


class _Tail:
    """Remembers how far one log has been read, over rotations."""

    def __init__(self, label: str, path: Path) -> None:
        self._label = label
        self._path = path
        self._offset = 0
        self._inode = 0

    def read(self) -> Sequence[LogLine]:
        try:
            with _open(self._path) as file:
                # No stat of the path: it may already name the next file.
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._offset = inode, 0
                self._offset = max(self._offset, os.fstat(file.fileno()).st_size - _TAIL_LIMIT)
                file.seek(self._offset)
                content = file.read(_TAIL_LIMIT)
        except FileNotFoundError:
            return ()
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [_parse(self._label, raw) for raw in whole.splitlines()]
