"""The whole output of a pod in a file on a volume, which outlives the pod and its short log."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Deque

from trainchart_launcher.console import print_line
from trainchart_runtime.io.files import open_regular

_BACKLOG_BYTES = 8 << 20
"""What waits for a slow volume at most; more is left out, and the file says so."""


class LogFile:
    """Appends what it is given to FOLDER/output/NAME, in a thread of its own.

    Nothing waits for a slow, full or silent volume. Where there is no FOLDER, as in a pod that does not mount it,
    nothing is kept.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "output", name)
        self._changed = threading.Condition()
        self._chunks: Deque[bytes] = deque()
        self._waiting_bytes = 0
        """Of the chunks above and of the one that is being written."""
        self._left_out_bytes = 0
        self._is_broken = False
        threading.Thread(target=self._run, daemon=True, name="log-file").start()

    def add(self, chunk: bytes) -> None:
        """Take in some bytes of output."""
        with self._changed:
            if self._is_broken:
                return
            if self._waiting_bytes + len(chunk) > _BACKLOG_BYTES:
                self._left_out_bytes += len(chunk)
                return
            if self._left_out_bytes:
                chunk = b"\n[%d bytes are missing: the volume was too slow]\n" % self._left_out_bytes + chunk
                self._left_out_bytes = 0
            self._chunks.append(chunk)
            self._waiting_bytes += len(chunk)
            self._changed.notify_all()

    def drain(self, seconds: float) -> None:
        """Wait until everything is written, `seconds` at most."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_broken or not self._waiting_bytes, timeout=deadline - time.monotonic()
            )

    def _run(self) -> None:
        try:
            if not os.path.isdir(self._folder):
                self._give_up()
                return
            with open(self._path, "ab", buffering=0, opener=self._open) as file:
                while True:
                    chunk = self._take()
                    file.write(chunk)
                    self._forget(len(chunk))
        except OSError as err:
            self._give_up()
            print_line(f"cannot keep the log in {self._path}: {err.strerror or err}")

    def _open(self, path: str, flags: int) -> int:
        """Open the file. Other pods of the volume may have put a link or a pipe in place of it or of its folder."""
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return open_regular(name, flags, dir_fd=place)
        finally:
            os.close(place)

    def _give_up(self) -> None:
        with self._changed:
            self._is_broken = True
            self._chunks.clear()
            self._changed.notify_all()

    def _take(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._chunks)
            chunk = b"".join(self._chunks)
            self._chunks.clear()
            return chunk

    def _forget(self, size: int) -> None:
        with self._changed:
            self._waiting_bytes -= size
            self._changed.notify_all()
