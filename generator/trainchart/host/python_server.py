"""A server of a Python module as a process of this machine, which only this machine reaches."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainchart.errors import ToolError

HOST = "127.0.0.1"
_LONGEST_LINE = 64 * 1024
_KILLED_SECONDS = 10.0


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
                hint="choose another port, or --port 0 for any that is free",
            ) from error


class PythonServer:
    """A started server, in a session of its own, so that Ctrl-C of a terminal reaches only us."""

    def __init__(
        self,
        called: str,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        take_line: Callable[[str], None],
    ) -> None:
        """Start it with this Python.

        `called` is its name in errors; `environment` is laid over that of this process; `take_line` gets each line that
        it prints, in another thread.

        Raises:
            ToolError: the operating system refuses to start it.
        """
        try:
            self._process = subprocess.Popen(
                # -P: a folder named like a module of the server in the current folder must not be imported.
                [sys.executable, "-P", "-m", module, *arguments],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"{called} cannot be started: {error.strerror or error}") from error
        self._take_line = take_line
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id, which is also its session's id."""
        return self._process.pid

    def wait(self, seconds: float | None = None) -> int | None:
        """Return the exit code (negative: the signal that killed it), or None where it still runs after `seconds`."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(_KILLED_SECONDS)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
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
                self._take_line(content.decode(errors="replace").rstrip("\n"))
