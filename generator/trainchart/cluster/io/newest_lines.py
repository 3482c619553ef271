"""The newest lines of a log that comes in parts: long lines are cut, and the oldest go where there are too many."""

from __future__ import annotations

from collections import deque

from trainchart.reports.log_line import LINE_LIMIT, cut_line

_END = 8 * LINE_LIMIT
"""Bytes kept of either end of a line that is not whole yet: more than is kept of the whole one."""


class NewestLines:
    """Keeps at most `most` characters of a log, whatever a program prints."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: deque[str] = deque()
        self._size = 0
        self._rest = b""

    def add(self, part: bytes) -> None:
        *whole, rest = (self._rest + part).split(b"\n")
        for line in whole:
            self._keep(line)
        self._rest = rest if len(rest) <= 2 * _END else rest[:_END] + rest[-_END:]

    def take(self) -> list[str]:
        """Return the lines, at the end of the log."""
        if self._rest:
            self._keep(self._rest)
        return list(self._lines)

    def _keep(self, line: bytes) -> None:
        text = cut_line(line.decode(errors="replace"))
        self._lines.append(text)
        self._size += len(text) + 1
        while self._size > self._most:
            self._size -= len(self._lines.popleft()) + 1
