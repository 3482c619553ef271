"""trainchart_serving as a process of this machine, which only this machine reaches."""

from __future__ import annotations

import importlib.util
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from trainchart.errors import ToolError
from trainchart.host.python_server import PythonServer

_NEEDED = (
    "trainchart_serving",
    *("tensorflow", "tensorflow_serving", "grpc", "grpc_health", "httptools", "prometheus_client", "starlette"),
    "uvicorn",
)
_INSTALL = "pip install 'trainchart[serving]' && pip install --no-deps tensorflow-serving-api==2.21.0"
_LISTENS = re.compile(r"serving .*: REST at (\S+), gRPC at (\S+)")
_LINES_KEPT = 40


def require_installed() -> None:
    """Raise ToolError where the model server cannot run with this Python."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ToolError(f"the model server needs {', '.join(missing)}, which is not installed", hint=_INSTALL)


class ServerProcess(PythonServer):
    """A started model server."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it. Raises ToolError where the operating system refuses."""
        self.address = self.grpc_address = ""
        """HOST:PORT of REST and gRPC, once it listens."""
        self.last_lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._lines: deque[str] = deque()
        super().__init__("the model server", "trainchart_serving", arguments, environment, self._keep)

    def take_lines(self) -> Iterator[str]:
        """Yield the lines that it has printed since the last call."""
        while self._lines:
            yield self._lines.popleft()

    def _keep(self, line: str) -> None:
        if listens := _LISTENS.fullmatch(line):
            self.address, self.grpc_address = listens[1], listens[2]
            return
        self.last_lines.append(line)
        self._lines.append(line)
