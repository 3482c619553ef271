"""Keeps the output of one pod: lines stamped with the time, in a file that is rotated as a kubelet does.

trainchart.local.io.logs reads these files.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024
"""A file that reaches this is renamed to `<name>.1`, replacing the one before: two files at most."""
MAX_LINE_BYTES = 65536


class RoleLog:
    """An open log. Failing writes never end the run: they are counted and the reason is kept in `failure`."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._rest = b""
        self.failure = ""
        self._file: BinaryIO | None = None
        self._open()

    def feed(self, chunk: bytes) -> list[str]:
        """Write the lines that `chunk` completes and return them as text."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        while len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest[:MAX_LINE_BYTES])
            self._rest = self._rest[MAX_LINE_BYTES:]
        return [self._write(line) for line in lines]

    def finish(self) -> list[str]:
        """Write a last line that has no line feed."""
        line, self._rest = self._rest, b""
        return [self._write(line)] if line else []

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self) -> None:
        try:
            self._file = self._path.open("ab", buffering=0)
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
