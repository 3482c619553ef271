"""One pod's life in a local run: starts its launcher, keeps its output, restarts and stops it when told.

Decides nothing about the run; supervise.py does, with the rules of verdict.py.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.trees import remove_tree
from trainchart.local.io.processes import PodProcess
from trainchart.local.io.release_folder import read_told
from trainchart.local.io.role_log import RoleLog
from trainchart.local.pod_plan import PodPlan
from trainchart.local.verdict import BACK_OFF_RESET_SECONDS, Next, back_off_seconds, decide_next
from trainchart_runtime.termination import Termination, parse_termination

_PARKED_SECONDS = 2.0
_DRAIN_READS = 64
"""Reads in a row (64 KiB each) before other pods get their turn."""


class PodState(enum.StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


LIVING = (PodState.RUNNING, PodState.STOPPING)


class PodRunner:
    """Times are monotonic seconds."""

    def __init__(self, plan: PodPlan, show_lines: Callable[[str, Sequence[str]], None]) -> None:
        self.plan = plan
        self.state = PodState.WAITING
        self.process: PodProcess | None = None
        self.restarts = 0
        self.exit_code: int | None = None
        self.termination: Termination | None = None
        self.last_line = ""
        self.log = RoleLog(Path(plan.log_file))
        self._show_lines = show_lines
        self._restarts_in_row = 0
        self._started_at = 0.0
        self._restart_at = 0.0
        self._kill_at: float | None = None
        self._succeeded_since: float | None = None

    def start(self) -> PodProcess:
        """Start the launcher; the container's termination message begins empty, as under a kubelet."""
        message = Path(self.plan.termination_file)
        try:
            # A program may have put anything there.
            remove_tree(message)
            message.touch(exist_ok=False)
        except OSError as err:
            raise ToolError(f"cannot write {self.plan.termination_file}: {err.strerror}") from err
        self.process = PodProcess(self.plan)
        self.state = PodState.RUNNING
        self._started_at = time.monotonic()
        return self.process

    def is_due(self) -> bool:
        """Say whether the back-off of a restarting pod is over."""
        return self.state is PodState.RESTARTING and time.monotonic() >= self._restart_at

    def read_output(self, output: int) -> bool:
        """Keep and show what the pod has written to one of its outputs; return False at the end of it."""
        if self.process is None:
            return False
        for _ in range(_DRAIN_READS):
            chunk = self.process.read_output(output)
            if not chunk:
                return chunk is not None
            self._show(self.log.feed(chunk, output))
        return True

    def poll_end(self) -> Next | None:
        """Return what follows if the launcher has ended just now, else None.

        Whatever it left running is killed first, as a container's end does.
        """
        if self.state not in LIVING or self.process is None:
            return None
        exit_code = self.process.poll_exit_code()
        if exit_code is None and self._is_parked():
            exit_code = 0
        if exit_code is None:
            return None
        self.process.kill_all()
        for output in self.process.outputs:
            self.read_output(output)
        self._show(self.log.finish())
        self.exit_code = exit_code
        self.termination = self._read_termination()
        if self.state is PodState.STOPPING:
            self.state = PodState.FINISHED if exit_code == 0 else PodState.STOPPED
            return None
        cause = self.termination.cause if self.termination else ""
        following = decide_next(exit_code, cause, restarts=self.restarts, max_restarts=self.plan.max_restarts)
        if following is Next.RESTART:
            self._schedule_restart()
        else:
            self.state = PodState.FINISHED if following is Next.FINISHED else PodState.FAILED
        return following

    def stop(self) -> None:
        """Ask the pod to stop; after its grace period `enforce_stop` kills it."""
        if self.state is PodState.RUNNING and self.process is not None:
            self.process.terminate()
            self.state = PodState.STOPPING
            self._kill_at = time.monotonic() + self.plan.stop_grace_seconds
        elif self.state in (PodState.RESTARTING, PodState.WAITING):
            self.state = PodState.STOPPED

    def enforce_stop(self) -> bool:
        """Kill a pod whose grace period is over; return whether that was necessary."""
        if self.state is not PodState.STOPPING or self._kill_at is None or time.monotonic() < self._kill_at:
            return False
        self._kill_at = None
        self.kill()
        return True

    def kill(self) -> None:
        """Kill every process of the pod at once."""
        if self.state in LIVING and self.process is not None:
            self.state = PodState.STOPPING
            self.process.kill_all()

    def _is_parked(self) -> bool:
        """Say whether the launcher found that its task has succeeded already, and now only waits.

        It says so in the message that a success leaves; one about to end writes the same, hence the delay.
        """
        termination = self._read_termination()
        if termination is None or not termination.succeeded:
            self._succeeded_since = None
            return False
        now = time.monotonic()
        self._succeeded_since = now if self._succeeded_since is None else self._succeeded_since
        return now - self._succeeded_since >= _PARKED_SECONDS

    def _schedule_restart(self) -> None:
        now = time.monotonic()
        if now - self._started_at >= BACK_OFF_RESET_SECONDS:
            self._restarts_in_row = 0
        self._restart_at = now + back_off_seconds(self._restarts_in_row)
        self._restarts_in_row += 1
        self.restarts += 1
        self.state = PodState.RESTARTING

    def _show(self, lines: list[str]) -> None:
        self.last_line = next((line for line in reversed(lines) if line.strip()), self.last_line)
        self._show_lines(self.plan.label, lines)

    def _read_termination(self) -> Termination | None:
        return parse_termination(read_told(Path(self.plan.termination_file)))
