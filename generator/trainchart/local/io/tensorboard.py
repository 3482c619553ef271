"""TensorBoard as a process of this machine, which only this machine reaches."""

from __future__ import annotations

import importlib.util
import re
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from trainchart.errors import NotInTime, ToolError
from trainchart.host.python_server import HOST, PythonServer

_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+?)/? \(Press CTRL")
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_LINES_KEPT = 20
_RELOAD_SECONDS = 5


def require_installed() -> None:
    """Raise ToolError where this Python has no TensorBoard."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ToolError("tensorboard is not installed", hint="pip install tensorboard")


class TensorBoard(PythonServer):
    """A started TensorBoard."""

    def __init__(self, folder: Path, port: int, environment: Mapping[str, str]) -> None:
        """Start it over the runs in a folder. Raises ToolError where the operating system refuses."""
        self.url = ""
        """Once it listens."""
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        arguments = [f"--logdir={folder}", f"--host={HOST}", f"--port={port}", f"--reload_interval={_RELOAD_SECONDS}"]
        super().__init__("TensorBoard", "tensorboard.main", arguments, environment, self._keep)

    def await_address(self) -> None:
        """Wait until it listens. Raises ToolError where it ends before, and NotInTime."""
        end = time.monotonic() + _START_SECONDS
        while not self.url:
            if self.wait(_LOOK_SECONDS) is not None:
                raise self._explain_end()
            if time.monotonic() > end:
                raise NotInTime(f"TensorBoard is not listening after {_START_SECONDS:.0f} seconds")

    def watch(self) -> NoReturn:
        """Wait until it ends by itself, which is an error. Raises ToolError."""
        self.wait()
        raise self._explain_end()

    def _explain_end(self) -> ToolError:
        said = " ".join(" ".join(self._lines).split())[-400:]
        return ToolError(f"TensorBoard has ended: {said or 'it printed nothing'}")

    def _keep(self, line: str) -> None:
        if found := _ADDRESS.search(line):
            self.url = found[1]
        self._lines.append(line)
