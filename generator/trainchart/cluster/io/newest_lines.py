"""The newest lines of a log that comes in parts: long lines are cut, and the oldest are dropped."""

from __future__ import annotations

import re
from collections import deque

from trainchart.reports.log_line import LINE_LIMIT, cut_line
from trainchart_runtime.log_text import hide_credentials

_END = 8 * LINE_LIMIT
"""Bytes kept of either end of a line that is not whole yet: more than is kept of the whole one."""
_FIRST_WORD = re.compile(rb"\A\s*(?:(?:basic|bearer)\s+)?\S+", re.IGNORECASE)


class NewestLines:
    """Keeps at most `most` characters of a log, whatever a program prints."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: deque[str] = deque()
        self._size = 0
        self._rest = b""
        self._is_cut = False
        """Whether what follows the first `_END` bytes of the rest is the end of what has come of the line."""

    def add(self, part: bytes) -> None:
        *whole, rest = (self._rest + part).split(b"\n")
        for line in whole:
            self._keep(line)
        if len(rest) > 2 * _END:
            rest, self._is_cut = rest[:_END] + rest[-_END:], True
        self._rest = rest

    def take(self) -> list[str]:
        """Return the lines, at the end of the log."""
        if self._rest:
            self._keep(self._rest)
        return list(self._lines)

    def _keep(self, line: bytes) -> None:
        if self._is_cut:
            # The first word may be the end of a token.
            line, self._is_cut = line[:_END] + b" \xe2\x80\xa6" + _FIRST_WORD.sub(b"", line[_END:], count=1), False
        text = line.decode(errors="replace")
        if len(text) > LINE_LIMIT:
            # Once it is cut, nothing would say that the rest of a token is one.
            text = cut_line(hide_credentials(text))
        self._lines.append(text)
        self._size += len(text) + 1
        while self._size > self._most:
            self._size -= len(self._lines.popleft()) + 1
