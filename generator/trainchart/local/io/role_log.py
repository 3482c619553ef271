"""Keeps the output of one pod: lines stamped with the time, in a file that is rotated as a kubelet does.

trainchart.local.io.logs reads these files.
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from trainchart_runtime.io.files import SpecialFileError, open_regular

MAX_BYTES = 10 * 1024 * 1024
"""A file that reaches this is renamed to `<name>.1`, replacing the one before: two files at most."""
MAX_LINE_BYTES = 65536
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class RoleLog:
    """An open log. Failing writes never end the run: they are counted and the reason is kept in `failure`."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._rests: dict[int, bytes] = {}
        """The begun line of each stream: two streams never share one."""
        self.failure = ""
        self._file: BinaryIO | None = None
        self._open()

    def feed(self, chunk: bytes, stream: int = 0) -> list[str]:
        """Write the lines that `chunk` of a stream completes and return them as text."""
        *lines, rest = (self._rests.get(stream, b"") + chunk).split(b"\n")
        while len(rest) > MAX_LINE_BYTES:
            lines.append(rest[:MAX_LINE_BYTES])
            rest = rest[MAX_LINE_BYTES:]
        self._rests[stream] = rest
        return [self._write(line) for line in lines]

    def finish(self) -> list[str]:
        """Write the last line of each stream that has no line feed."""
        lines = [line for line in self._rests.values() if line]
        self._rests.clear()
        return [self._write(line) for line in lines]

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self) -> None:
        try:
            try:
                handle = open_regular(self._path, _APPEND)
            except SpecialFileError:
                # What a program, or a clone, has put there; a device is not removed.
                if not (self._path.is_symlink() or self._path.is_fifo()):
                    raise
                self._path.unlink()
                handle = open_regular(self._path, _APPEND | os.O_EXCL)
            self._file = os.fdopen(handle, "ab", buffering=0)
        except OSError as err:
            self._fail(err)

    def _write(self, line: bytes) -> str:
        # A progress bar rewrites its line by carriage returns: only the last state is worth keeping.
        line = line.rstrip(b"\r").rpartition(b"\r")[2]
        stamp = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        if self._file is not None:
            try:
                self._file.write(stamp.encode() + b" " + line + b"\n")
                if self._file.tell() >= self._max_bytes:
                    self._rotate()
            except OSError as err:
                self._fail(err)
        return line.decode(errors="replace")

    def _rotate(self) -> None:
        self.close()
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._open()

    def _fail(self, err: OSError) -> None:
        self.failure = self.failure or f"{err.strerror}: {self._path}"
