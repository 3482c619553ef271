"""trainchart_serving as a process of this machine, which only this machine reaches."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trainchart.errors import ToolError

HOST = "127.0.0.1"
_NEEDED = (
    "trainchart_serving",
    *("tensorflow", "tensorflow_serving", "grpc", "grpc_health", "httptools", "prometheus_client", "starlette"),
    "uvicorn",
)
_INSTALL = "pip install 'trainchart[serving]' && pip install --no-deps tensorflow-serving-api==2.21.0"
_LISTENS = re.compile(r"serving .*: REST at (\S+), gRPC at (\S+)")
_LINES_KEPT = 40
_LONGEST_LINE = 64 * 1024
_KILLED_SECONDS = 10.0


def require_installed() -> None:
    """Raise ToolError where the model server cannot run with this Python."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ToolError(f"the model server needs {', '.join(missing)}, which is not installed", hint=_INSTALL)


def require_free(port: int, option: str) -> None:
    """Raise ToolError where a port of loopback is taken; port 0 is any that is free."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            reason = "another program listens there" if taken else (error.strerror or str(error)).lower()
            raise ToolError(
                f"{option}: cannot listen on port {port} of {HOST}: {reason}",
                hint="choose another port, or --port 0 for any two that are free",
            ) from error


class ServerProcess:
    """A started server, in a session of its own, so that Ctrl-C of a terminal reaches only us."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it. Raises ToolError where the operating system refuses."""
        # -P: a folder named like a module of the server in the current folder must not be imported.
        command = [sys.executable, "-P", "-m", "trainchart_serving", *arguments]
        try:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"the model server cannot be started: {error.strerror or error}") from error
        self.address = self.grpc_address = ""
        """HOST:PORT of REST and gRPC, once it listens."""
        self.last_lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._lines: deque[str] = deque()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id, which is also its session's id."""
        return self._process.pid

    def take_lines(self) -> Iterator[str]:
        """Yield the lines that it has printed since the last call."""
        while self._lines:
            yield self._lines.popleft()

    def wait(self, seconds: float) -> int | None:
        """Return the exit code (negative: the signal that killed it), or None where it still runs after `seconds`."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(_KILLED_SECONDS)
        return code

    def drain(self) -> None:
        """Ask it to answer what has begun, and to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it and what it has started at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._reader.join(_KILLED_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while content := output.readline(_LONGEST_LINE):
                line = content.decode(errors="replace").rstrip("\n")
                if found := _LISTENS.fullmatch(line):
                    self.address, self.grpc_address = found[1], found[2]
                    continue
                self.last_lines.append(line)
                self._lines.append(line)
