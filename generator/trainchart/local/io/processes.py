"""Starts and signals the processes of a local run: pods in sessions of their own, and their guardian.

Knows nothing of verdicts or restarts; supervise.py decides when to call what is here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.local.io.process_table import kill_sessions
from trainchart.local.plan import POD_MARK
from trainchart.local.pod_plan import PodPlan
from trainchart_runtime import contract

_GUARDIAN_SECONDS = 20.0
"""How long the guardian may take for its last sweep before a run ends without it."""
_CHUNK_BYTES = 65536


class PodProcess:
    """A started launcher: leader of its own session, with its output in two pipes that never block us."""

    def __init__(self, plan: PodPlan) -> None:
        """Start the pod's process.

        Raises:
            ToolError: the operating system refuses to start it.
        """
        try:
            self._process = subprocess.Popen(
                plan.argv,
                env={**plan.environment, contract.LOCAL_PARENT: str(os.getpid())},
                cwd=plan.working_directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as err:
            raise ToolError(
                f"{plan.label} cannot be started: {err.strerror}: {err.filename or plan.argv[0]}",
                hint="see `trainchart run --dry-run` for its command; choose another Python with --python",
            ) from err
        self._mark = plan.environment[POD_MARK]
        self._pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]
        self.outputs = tuple(pipe.fileno() for pipe in self._pipes)
        """Descriptors of standard output and standard error."""
        for output in self.outputs:
            os.set_blocking(output, False)

    @property
    def pid(self) -> int:
        """Process id of the launcher, which is also its session's id."""
        return self._process.pid

    def read_output(self, output: int) -> bytes | None:
        """Return what has been written to one of the outputs: empty when nothing is there, None at the end."""
        try:
            return os.read(output, _CHUNK_BYTES) or None
        except BlockingIOError:
            return b""

    def poll_exit_code(self) -> int | None:
        """Return the exit code (negative: the signal that killed it), or None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Send SIGTERM to the launcher, which forwards it."""
        self._process.terminate()

    def kill_all(self) -> None:
        """Kill the launcher and every process that came from it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        kill_sessions({self.pid}, POD_MARK, self._mark)
        self._process.wait()

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()


class Guardian:
    """Our end of the guardian process (guardian.py), which is started again when it is killed."""

    def __init__(self, mark_prefix: str, environment: Mapping[str, str]) -> None:
        # -P: a folder named like a module of ours in the current folder must not be imported.
        self._argv = [sys.executable, "-P", "-m", "trainchart.local.io.guardian", POD_MARK, mark_prefix]
        self._environment = dict(environment)
        self._sessions: set[int] = set()
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch(self, session: int) -> None:
        self._sessions.add(session)
        self._tell(f"+{session}\n")

    def forget(self, session: int) -> None:
        """Stop watching a session that has no process left: its number may be used again by others."""
        self._sessions.discard(session)
        self._tell(f"-{session}\n")

    def revive(self) -> bool:
        """Start another guardian if this one has ended, for the same sessions; return whether it had.

        Raises:
            OSError: the operating system refuses to start it.
        """
        if self._process.poll() is None:
            return False
        self._close_pipe()
        self._process = self._start()
        for session in self._sessions:
            self._tell(f"+{session}\n")
        return True

    def close(self) -> None:
        """Let the guardian do its last sweep and wait for it."""
        self._close_pipe()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GUARDIAN_SECONDS)

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._argv,
            env=self._environment,
            cwd=Path("/"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _close_pipe(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        # A guardian that has ended is told everything again by `revive`.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
