"""TensorBoard as a process of this machine, which only this machine reaches."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from trainchart.errors import NotInTime, ToolError

_HOST = "127.0.0.1"
_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+?)/? \(Press CTRL")
_START_SECONDS = 120.0
_LINES_KEPT = 20
_LONGEST_LINE = 64 * 1024
_KILLED_SECONDS = 10.0
_RELOAD_SECONDS = 5


def require_installed() -> None:
    """Raise ToolError where this Python has no TensorBoard."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ToolError("tensorboard is not installed", hint="pip install tensorboard")


class TensorBoard:
    """A started TensorBoard, in a session of its own, so that Ctrl-C of a terminal reaches only us."""

    def __init__(self, folder: Path, port: int, environment: Mapping[str, str]) -> None:
        """Start it over the runs in a folder. Raises ToolError where the operating system refuses."""
        arguments = [f"--logdir={folder}", f"--host={_HOST}", f"--port={port}", f"--reload_interval={_RELOAD_SECONDS}"]
        try:
            self._process = subprocess.Popen(
                # -P: a folder named like a module of TensorBoard in the current folder must not be imported.
                [sys.executable, "-P", "-m", "tensorboard.main", *arguments],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"TensorBoard cannot be started: {error.strerror or error}") from error
        self.url = ""
        """Once it listens."""
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id, which is also its session's id."""
        return self._process.pid

    def await_address(self) -> None:
        """Wait until it listens. Raises ToolError where it ends before, and NotInTime."""
        if not self._listens.wait(_START_SECONDS):
            raise NotInTime(f"TensorBoard does not listen after {_START_SECONDS:.0f} seconds")
        if not self.url:
            raise self._explain_end()

    def watch(self) -> NoReturn:
        """Wait until it ends by itself, which is an error. Raises ToolError."""
        self._process.wait()
        raise self._explain_end()

    def kill(self) -> None:
        """End it and what it has started at once; it writes nothing."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(_KILLED_SECONDS)

    def _explain_end(self) -> ToolError:
        self._reader.join(_KILLED_SECONDS)
        said = " ".join(" ".join(self._lines).split())[-400:]
        return ToolError(f"TensorBoard has ended: {said or 'it says nothing'}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while content := output.readline(_LONGEST_LINE):
                line = content.decode(errors="replace").rstrip("\n")
                if found := _ADDRESS.search(line):
                    self.url = found[1]
                    self._listens.set()
                self._lines.append(line)
        self._listens.set()
