"""Pass a program's output on unchanged while remembering its last lines.

One thread per stream with plain reads and writes: the main thread stays free for signals when a reader of the
log is slow. The program's bytes are never decoded on their way.
"""

from __future__ import annotations

import collections
import os
import re
import select
import threading
import time
from typing import Deque, List, Protocol, Sequence

_READ_BYTES = 1 << 18
TAIL_BYTES = 1 << 16
"""Enough for a TensorFlow traceback, which may list a whole graph."""
LOG_BYTES = 1 << 18
"""Kept for those who ask for the log: 200 lines, also long ones and those that overwrite themselves."""
_CHUNKS_KEPT = 1000
_SMALL_BYTES = 4096
_NAP_SECONDS = 0.005
"""After a small piece, so that a program that prints line by line wakes the launcher 200 times a second only."""
_ESCAPES = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"


class Sink(Protocol):
    """Takes in pieces of output, from several threads, without making them wait."""

    def add(self, chunk: bytes) -> None: ...


class Tail:
    """The last bytes of one or several streams; safe to fill from several threads."""

    def __init__(self, limit_bytes: int = TAIL_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._chunks: Deque[bytes] = collections.deque()
        self._size = 0
        self._is_cut = False

    def add(self, chunk: bytes) -> None:
        # Chunks are kept, not copied: a program that floods its log is not slowed down.
        with self._lock:
            self._chunks.append(chunk)
            self._size += len(chunk)
            while self._size - len(self._chunks[0]) >= self._limit_bytes:
                self._size -= len(self._chunks.popleft())
                self._is_cut = True
            if len(self._chunks) > _CHUNKS_KEPT:
                joined = b"".join(self._chunks)
                self._chunks.clear()
                self._chunks.append(joined)

    def lines(self) -> List[str]:
        """Return the last lines as text, without terminal codes and overwritten parts."""
        with self._lock:
            written = b"".join(self._chunks)
            is_cut = self._is_cut or len(written) > self._limit_bytes
        text = written[-self._limit_bytes :].decode("utf-8", "replace")
        lines = [_visible(line) for line in text.split("\n")]
        if is_cut and len(lines) > 1:
            del lines[0]
        if not lines[-1]:
            del lines[-1]
        return lines


class LineFeed:
    """Fills sinks that several streams share with whole lines, so that no stream cuts another's in two."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._rest = (self._rest + chunk)[-TAIL_BYTES:]
            return
        lines, self._rest = self._rest + chunk[:end], chunk[end:]
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

    def run(self) -> None:
        while True:
            self._is_busy = False
            chunk = os.read(self._source, _READ_BYTES)
            self._is_busy = True
            if not chunk:
                break
            for sink in self._sinks:
                sink.add(chunk)
            _write_all(self._target, chunk)
            if len(chunk) < _SMALL_BYTES:
                time.sleep(_NAP_SECONDS)
        os.close(self._source)

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


def _visible(line: str) -> str:
    shown = [part for part in line.split("\r") if part]
    return re.sub(_ESCAPES, "", shown[-1]) if shown else ""
