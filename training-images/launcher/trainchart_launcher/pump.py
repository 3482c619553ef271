"""Pass a program's output on unchanged while remembering its last lines.

One thread per stream with plain reads and writes: the main thread stays free for signals when a reader of the
log is slow. The program's bytes are never decoded on their way.
"""

from __future__ import annotations

import collections
import os
import select
import sys
import threading
import time
from typing import Deque, List, Protocol, Sequence

from trainchart_launcher import console

_READ_BYTES = 1 << 18
TAIL_BYTES = 1 << 16
"""Enough for a TensorFlow traceback, which may list a whole graph."""
_LINE_BYTES = 1 << 14
"""Kept of one line: an endless one must not push out all others."""
_UNENDED_BYTES = 1 << 20
"""A line that has no end by then is passed on without one."""
_HEAD_BYTES = 1 << 15
_HEADING = b"Traceback (most recent call last):"
_CHUNKS_KEPT = 1000
_SMALL_BYTES = 4096
_NAP_SECONDS = 0.005
"""After a small piece, so that a program that prints line by line wakes the launcher 200 times a second only."""


class Sink(Protocol):
    """Takes in pieces of output, from several threads, without making them wait."""

    def add(self, chunk: bytes) -> None: ...


class Tail:
    """The last bytes of one or several streams, and the begin of the last traceback; for several threads to fill.

    Of a traceback longer than all that is kept, the end is rarely what says why.
    """

    def __init__(self, limit_bytes: int = TAIL_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._chunks: Deque[bytes] = collections.deque()
        self._size = 0
        self._total = 0
        self._head = b""
        self._head_at = 0
        """Where the last traceback begins, in bytes since the first."""

    def add(self, chunk: bytes) -> None:
        # Chunks are kept, not copied: a program that floods its log is not slowed down.
        if len(chunk) > _LINE_BYTES:
            chunk = b"\n".join(map(_shorten, chunk.split(b"\n")))
        with self._lock:
            heading = chunk.rfind(_HEADING)
            if heading >= 0:
                self._head, self._head_at = chunk[heading : heading + _HEAD_BYTES], self._total + heading
            elif self._head and len(self._head) < _HEAD_BYTES:
                self._head += chunk[: _HEAD_BYTES - len(self._head)]
            self._chunks.append(chunk)
            self._size += len(chunk)
            self._total += len(chunk)
            while self._size - len(self._chunks[0]) >= self._limit_bytes:
                self._size -= len(self._chunks.popleft())
            if len(self._chunks) > _CHUNKS_KEPT:
                joined = b"".join(self._chunks)
                self._chunks.clear()
                self._chunks.append(joined)

    def count_bytes(self) -> int:
        """Return how much was printed so far."""
        return self._total

    def lines(self) -> List[str]:
        """Return the last lines as text, without terminal codes and overwritten parts."""
        from trainchart_runtime.log_text import visible_line

        text = self._read()
        return [visible_line(line) for line in text.split("\n")] if text else []

    def pieces(self) -> List[str]:
        """Return all that the last lines said, also what they have overwritten, without terminal codes."""
        from trainchart_runtime.log_text import clean

        return [clean(piece) for piece in self._read().replace("\r", "\n").split("\n")]

    def _read(self) -> str:
        with self._lock:
            written = b"".join(self._chunks)[-self._limit_bytes :]
            cut_at, head, head_at = self._total - len(written), self._head, self._head_at
        if not cut_at:
            return _decode(written)
        # What was cut in two says little, except where there is nothing else.
        _, newline, others = written.partition(b"\n")
        kept = others if newline and others else written
        if head and head_at < cut_at:
            head = head[: cut_at - head_at]
            kept = head[: head.rfind(b"\n") + 1] + kept
        return _decode(kept)


class LineFeed:
    """Fills sinks that several streams share with whole lines, so that no stream cuts another's in two."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks
        self._rest = bytearray()

    def add(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._rest += chunk
            if len(self._rest) < _UNENDED_BYTES:
                return
            chunk, end = b"", 0
        lines, self._rest = bytes(self._rest) + chunk[:end], bytearray(chunk[end:])
        for sink in self._sinks:
            sink.add(lines)

    def end(self) -> None:
        """Pass on a last line without newline, as a line: the next stream or program begins another."""
        if self._rest:
            self.add(b"\n")


class Pump(threading.Thread):
    """Copy one pipe to one file descriptor until the last writer is gone."""

    def __init__(self, source: int, target: int, sinks: Sequence[Sink]) -> None:
        super().__init__(daemon=True, name=f"pump-{target}")
        self._source = source
        self._target = target
        self._sinks = sinks
        self._is_busy = True
        self._read = 0
        self._passed_on = 0

    def run(self) -> None:
        while True:
            self._is_busy = False
            chunk = os.read(self._source, _READ_BYTES)
            self._is_busy = True
            self._read += len(chunk)
            if not chunk:
                break
            for sink in self._sinks:
                sink.add(chunk)
            _write_all(self._target, chunk)
            self._passed_on += len(chunk)
            console.note_output(self._target, chunk)
            if len(chunk) < _SMALL_BYTES:
                time.sleep(_NAP_SECONDS)
        os.close(self._source)

    def find_end(self) -> int:
        """Return how many bytes the pipe has given so far, with those that are in it now."""
        import fcntl
        import termios

        try:
            waiting = fcntl.ioctl(self._source, termios.FIONREAD, b"\0" * 4)
        except OSError:  # It has ended.
            return self._read
        return self._read + int.from_bytes(waiting, sys.byteorder)

    def has_passed_on(self, count: int) -> bool:
        """Say whether the first `count` bytes have been passed on."""
        return self._passed_on >= count or not self.is_alive()

    def is_quiet(self) -> bool:
        """Say whether there is nothing to pass on at this moment."""
        try:
            readable, _, _ = select.select([self._source], [], [], 0)
        except (OSError, ValueError):
            return True
        return not readable and not self._is_busy


def _write_all(target: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select([], [target], [])
        except OSError:
            # The log is gone or full. Training is worth more: read on, so that the program never blocks.
            return


def _decode(text: bytes) -> str:
    return (text[:-1] if text.endswith(b"\n") else text).decode("utf-8", "replace")


def _shorten(line: bytes) -> bytes:
    """Return a line without its middle if it is very long, and before that without what it has overwritten."""
    if len(line) > _LINE_BYTES:
        line = line[line.rstrip(b"\r").rfind(b"\r") + 1 :]
    if len(line) > _LINE_BYTES:
        line = line[: _LINE_BYTES // 2] + b" ... " + line[-_LINE_BYTES // 2 :]
    return line
