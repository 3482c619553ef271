"""The life of one pod: park or train, start again or give up, and the last words about it.

What to decide is in trainchart_runtime (classify, restart); how one attempt runs is in attempt.py. Imports
inside functions are those that the program's first start does not need.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Mapping, Optional, Sequence

from trainchart_launcher import state
from trainchart_launcher.attempt import AttemptEnd, Surroundings, Watchdog, run_attempt
from trainchart_launcher.child import reap
from trainchart_launcher.console import copy_lines, print_line
from trainchart_launcher.environment import resolve_invocation
from trainchart_launcher.settings import ContractError, Settings, read_settings
from trainchart_launcher.signals import Signals
from trainchart_runtime import contract
from trainchart_runtime.cluster import ClusterDescriptionError, tasks_to_outlive

if TYPE_CHECKING:
    from trainchart_launcher.cgroup import MemoryKills
    from trainchart_launcher.fence import Fence
    from trainchart_launcher.log_file import LogFile
    from trainchart_launcher.report import Report
    from trainchart_runtime.classify import Diagnosis

_LINGER_SECONDS = 10.0
"""How long the log of a program that is given up stays within reach."""
_LAST_LINES_SECONDS = 2.0
"""How long a slow volume may keep the launcher from its end."""


def launch(arguments: Sequence[str], environ: Mapping[str, str], signals: Signals) -> int:
    """Run the pod's program as the chart wants it; returns the launcher's exit code."""
    try:
        settings = read_settings(environ)
        return Supervisor(settings, _parse_command(arguments), environ, signals).run()
    except (ContractError, ClusterDescriptionError) as err:
        from trainchart_launcher.last_words import refuse

        return refuse(str(err), environ)


class Supervisor:
    """Runs attempts until one verdict about this task is reached."""

    def __init__(
        self, settings: Settings, command: Sequence[str], environ: Mapping[str, str], signals: Signals
    ) -> None:
        self._settings = settings
        self._command = command
        self._environ = environ
        self._signals = signals
        signals.keeps_back_stop = bool(settings.save_wait_seconds and tasks_to_outlive(settings.cluster, settings.task))
        self._log_file = self._open_log_file()
        self._progress_file = state.find_progress_file(settings)
        self._fence: Optional[Fence] = None
        self._report: Optional[Report] = None
        self._memory_kills: Optional[MemoryKills] = None
        memory = state.read_memory(settings)
        self._attempts = memory.attempts
        self._failures = memory.failures
        self._was_running = memory.program_was_running

    def run(self) -> int:
        """Return the launcher's exit code once the pod has nothing left to do."""
        try:
            return self._run()
        finally:
            if self._log_file:
                self._log_file.drain(_LAST_LINES_SECONDS)

    def _run(self) -> int:
        earlier = state.read_outcome(self._settings)
        if earlier is not None:
            return self._repeat(earlier)
        self._raise_fence()
        code = self._count_lost_program() if self._was_running else None
        while code is None:
            code = self._conclude(self._await_claim() or self._run_program())
        return code

    def _open_log_file(self) -> Optional[LogFile]:
        settings = self._settings
        if not settings.logs_dir.startswith("/"):
            return None
        from trainchart_launcher.log_file import LogFile

        file = LogFile(settings.logs_dir, f"{settings.pod_name}.log")
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        file.add(f"--- {start} {settings.pod_name} {settings.pod_uid} on {settings.node_name}\n".encode())
        copy_lines(file.add)
        return file

    def _raise_fence(self) -> None:
        path = state.find_owner_file(self._settings)
        if path and self._settings.fence_seconds:
            from trainchart_launcher.fence import Fence

            self._fence = Fence(path, self._settings, self._signals)

    def _await_claim(self) -> Optional[AttemptEnd]:
        """Wait until this pod owns its task; return how the attempt ended if it cannot even start."""
        fence, has_waited = self._fence, False
        if fence:
            fence.begin()
        while fence and not self._signals.stop_signal and not fence.is_decided():
            if has_waited:
                # It takes longer than a look at a file: a user may want to know why.
                self._reporting().serve()
            self._signals.wait(fence.pause_seconds())
            has_waited = True
            reap()
        now = time.time()
        end = AttemptEnd(None, None, now, now, 0.0)
        if self._signals.stop_signal:
            return end._replace(signal=self._signals.stop_signal, stopped=True)
        if fence and fence.rival:
            return end._replace(exit_code=contract.EXIT_SUPERSEDED, superseded_by=fence.rival)
        if fence and fence.lost_storage:
            return end._replace(exit_code=contract.EXIT_STORAGE_LOST, lost_storage=fence.lost_storage)
        return None

    def _run_program(self) -> AttemptEnd:
        number = self._attempts.started + 1
        invocation = resolve_invocation(self._settings, self._command, self._environ, self._progress_file, number)
        self._attempts = self._attempts._replace(started=number)
        self._remember(is_running=True)
        watchdog = Watchdog(self._progress_file, self._settings.no_progress_seconds)
        try:
            surroundings = Surroundings(self._settings, self._signals, self._log_file, self._fence)
            return run_attempt(surroundings, invocation, watchdog, self._announce_start)
        finally:
            self._remember(is_running=False)

    def _remember(self, is_running: bool) -> None:
        state.write_memory(self._settings, state.Memory(self._attempts, is_running, self._failures))

    def _announce_start(self) -> None:
        from trainchart_launcher.cgroup import MemoryKills

        self._memory_kills = self._memory_kills or MemoryKills()
        self._memory_kills.begin()
        print_line(f"{self._settings.task}: attempt {self._attempts.started} of {self._command[0]}")
        report = self._reporting()
        report.update(
            state="running", attempt=self._attempts.started, ended=self._attempts.ended, failures=self._failures
        )
        report.watch_peers()
        report.watch_memory(self._memory_kills)
        report.serve()

    def _conclude(self, end: AttemptEnd, was_seen: bool = True) -> Optional[int]:
        """Write down how an attempt ended; return the exit code, or None after the wait for the next one."""
        from trainchart_launcher.last_words import describe, diagnose, note_failure
        from trainchart_runtime import causes, restart
        from trainchart_runtime.classify import identify_failure

        if self._report:
            self._report.stop_watching()
        kills = self._memory_kills.count() if self._memory_kills else 0
        throttling = self._report.measure_throttling() if self._report and end.stalled else None
        diagnosis = diagnose(end, self._command, kills, throttling)
        if diagnosis.cause in (causes.SUCCEEDED, causes.TERMINATED):
            return self._finish(end, diagnosis, "")
        if diagnosis.cause is causes.SUPERSEDED:
            return self._finish(end, diagnosis, "two pods must not train the same task")
        step = state.read_progress(self._settings).step
        failure = identify_failure(diagnosis, step, end.ran_seconds)
        self._attempts = restart.count_failure(self._attempts, diagnosis.cause, end.ran_seconds, failure)
        if was_seen:
            self._attempts = self._attempts._replace(ended=self._attempts.ended + 1)
        given_up = restart.explain_giving_up(self._attempts, diagnosis.cause, self._settings.max_restarts)
        if was_seen and not given_up:
            self._failures = note_failure(self._failures, self._attempts, end, diagnosis)
        self._remember(is_running=False)
        if given_up:
            return self._finish(end, diagnosis, given_up)
        wait_seconds = restart.resolve_wait(self._attempts)
        said = describe(self._settings, self._attempts, end, diagnosis)
        print_line(f"{said}; starting again in {wait_seconds:.1f} s")
        self._reporting().update(
            state="waiting",
            own_failures=self._attempts.own_failures,
            peer_failures=self._attempts.peer_failures,
            last_cause=diagnosis.cause.name,
            last_error=diagnosis.error,
            ended=self._attempts.ended,
            failures=self._failures,
        )
        self._reporting().serve()
        self._rest(time.monotonic() + wait_seconds)
        return None

    def _finish(self, end: AttemptEnd, diagnosis: Diagnosis, given_up: str) -> int:
        """Leave the last words of this task and return the exit code that goes with them."""
        from trainchart_launcher.last_words import describe, resolve_termination
        from trainchart_runtime import causes
        from trainchart_runtime.termination import dump_termination

        settings, attempts = self._settings, self._attempts
        message = resolve_termination(settings, attempts, end, diagnosis, self._signals.stop_signal)
        message = message._replace(ended=attempts.ended, failures=self._failures)
        body = dump_termination(message)
        print_line(describe(settings, attempts, end, diagnosis) + (f"; giving up: {given_up}" if given_up else ""))
        if given_up:
            print_line(f"{diagnosis.cause.sentence} {diagnosis.cause.hint}")
        if diagnosis.cause is not causes.TERMINATED:
            state.write_outcome(self._settings, body, message.succeeded)
        state.write_termination(self._settings.termination_file, body)
        if self._fence:
            self._fence.release()
        return message.exit_code

    def _repeat(self, message: str) -> int:
        """Say again how this task ended in this run, and park if it was a success.

        Kubernetes restarts a pod's container whatever it returned, and remembers its last end only.
        """
        from trainchart_runtime.termination import parse_termination

        state.write_termination(self._settings.termination_file, message.encode("utf-8", "replace"))
        outcome = parse_termination(message)
        if outcome is not None and not outcome.succeeded:
            print_line(f"{self._settings.task}: gave up on this run before ({outcome.cause}); not starting again")
            # Kubernetes keeps the log of one container before the present one: the run controller reads it meanwhile.
            self._rest(time.monotonic() + _LINGER_SECONDS)
            return outcome.exit_code
        print_line(f"{self._settings.task}: has finished this run; nothing left to do")
        report = self._reporting()
        report.update(state="parked", attempt=self._attempts.started)
        report.serve()
        self._rest(None)
        return 0

    def _count_lost_program(self) -> Optional[int]:
        """Count the program that was killed together with the launcher before this one."""
        now = time.time()
        return self._conclude(AttemptEnd(None, signal.SIGKILL, now, now, 0.0), was_seen=False)

    def _rest(self, until: Optional[float]) -> None:
        """Sleep until time.monotonic() is `until` or a stop is requested, reaping what ends meanwhile."""
        while not self._signals.stop_signal and (until is None or time.monotonic() < until):
            if self._fence and self._fence.rival:
                return
            self._signals.wait(None if until is None else until - time.monotonic())
            reap()

    def _reporting(self) -> Report:
        if self._report is None:
            from trainchart_launcher.report import Report

            self._report = Report(self._settings, self._signals, self._fence)
        return self._report


def _parse_command(arguments: Sequence[str]) -> Sequence[str]:
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        raise ContractError("no program given: launcher.pyz -- PROGRAM ARGUMENTS...")
    return command
