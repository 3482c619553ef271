"""One attempt: start the program, watch it until its whole process group is gone, say how it ended."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from trainchart_launcher import console
from trainchart_launcher.child import end_group, reap, start_child
from trainchart_launcher.environment import Invocation
from trainchart_launcher.pump import LineFeed, Pump, Sink, Tail
from trainchart_launcher.settings import Settings
from trainchart_launcher.signals import Signals
from trainchart_runtime import contract

if TYPE_CHECKING:
    from trainchart_launcher.fence import Fence
    from trainchart_launcher.leader_wait import LeaderWait
    from trainchart_launcher.standstill import StandstillWatch

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Both as in every shell."""
_KILL_MARGIN_SECONDS = 1.0
"""Left of the grace period for the launcher's own last words."""
_KILL_AGAIN_SECONDS = 0.5
_QUIET_SECONDS = 0.25
"""A pipe that a stranger keeps open counts as empty after so long without output."""


class AttemptEnd(NamedTuple):
    """How one attempt ended. Exactly one of `exit_code` and `signal` is set."""

    exit_code: Optional[int]
    signal: Optional[int]
    started_at: float
    """Unix seconds."""
    finished_at: float
    ran_seconds: float
    output: Sequence[str] = ()
    """The last lines as the log shows them."""
    streams: Sequence[str] = ()
    """The last lines of stdout, then those of stderr, none cut in two by the other stream."""
    stopped: bool = False
    stalled: bool = False
    waited_in: str = ""
    """Where a program waited that stalled, as far as that could be found out."""
    superseded_by: str = ""
    lost_storage: str = ""


class Surroundings(NamedTuple):
    """What all attempts in this pod share."""

    settings: Settings
    signals: Signals
    log_file: Optional[Sink]
    """Where the pod's whole output is kept, over all attempts."""
    fence: Optional[Fence]
    """Set where another pod may take over the task."""


class Watchdog:
    """Notices that a progress file no longer changes.

    It sleeps until the program has ever written one. Later starts it watches from their beginning: a program that hangs
    there would hang forever.
    """

    def __init__(self, progress_file: str, limit_seconds: float) -> None:
        self._path = progress_file
        self._limit_seconds = limit_seconds
        self._seen = self._look()
        self._looked_at = time.monotonic()
        self._idle_seconds = 0.0
        self._was_paused = False

    def is_expired(self, is_paused: bool) -> bool:
        """Look at the file; the time in which the program was paused does not count."""
        if not self._limit_seconds:
            return False
        now, seen = time.monotonic(), self._look()
        if seen != self._seen:
            self._seen, self._idle_seconds = seen, 0.0
        elif not (is_paused or self._was_paused):
            self._idle_seconds += now - self._looked_at
        self._looked_at, self._was_paused = now, is_paused
        return seen is not None and self._idle_seconds > self._limit_seconds

    @property
    def interval_seconds(self) -> Optional[float]:
        """How long to sleep between two looks; None where there is nothing to watch."""
        return min(self._limit_seconds / 4, 5.0) if self._limit_seconds else None

    def _look(self) -> Optional[Tuple[int, int]]:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns


def run_attempt(
    surroundings: Surroundings,
    invocation: Invocation,
    watchdog: Watchdog,
    on_start: Callable[[], None],
) -> AttemptEnd:
    """Run the program once. `on_start` is called when it runs: for all that must not delay its start."""
    settings, signals, log_file, fence = surroundings
    started_at, began = time.time(), time.monotonic()
    console.begin_lines()
    try:
        child = start_child(invocation.command, invocation.environ)
    except (OSError, ValueError) as err:
        return _describe_refused_start(invocation.command[0], err, started_at)
    signals.attach(child.pid)
    everything, stdout, stderr = Tail(), Tail(), Tail()
    files: List[Sink] = [log_file] if log_file else []
    feeds = [LineFeed([*files, everything, stdout]), LineFeed([*files, everything, stderr])]
    pumps = [Pump(child.stdout, 1, [feeds[0]]), Pump(child.stderr, 2, [feeds[1]])]
    for pump in pumps:
        pump.start()
    on_start()
    standstill = _watch_standstill(settings, child.pid, everything)
    status, stalled_at, waited_in = _watch(child.pid, surroundings, watchdog)
    standstill.stop()
    finished_at, ran_seconds = time.time(), time.monotonic() - began
    signals.detach()
    end_group(child.pid, _find_kill_time(settings.stop_grace_seconds, signals, stalled_at), signals.wait)
    _drain(pumps, settings.stop_grace_seconds, signals)
    for feed in feeds:
        feed.end()
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return AttemptEnd(
        exit_code=None if by_signal else os.WEXITSTATUS(status),
        signal=by_signal,
        started_at=started_at,
        finished_at=finished_at,
        ran_seconds=ran_seconds,
        output=everything.lines(),
        streams=[*stdout.pieces(), *stderr.pieces()],
        stopped=bool(signals.stop_signal) or by_signal in signals.forwarded,
        stalled=stalled_at is not None,
        waited_in=waited_in,
        superseded_by=fence.rival if fence else "",
        lost_storage=fence.lost_storage if fence else "",
    )


def _watch_standstill(settings: Settings, pid: int, output: Tail) -> StandstillWatch:
    from trainchart_launcher.standstill import StandstillWatch
    from trainchart_launcher.state import find_progress_file

    watch = StandstillWatch(settings.task, pid, find_progress_file(settings), output.count_bytes)
    watch.start()
    return watch


def _watch(pid: int, surroundings: Surroundings, watchdog: Watchdog) -> Tuple[int, Optional[float], str]:
    """Wait for the program's end; return its wait status, when the watchdog asked it to end, and where it waited."""
    settings, signals, _, fence = surroundings
    stalled_at: Optional[float] = None
    waited_in = ""
    leader_wait: Optional[LeaderWait] = None
    halted: Dict[int, bool] = {}
    is_halted = False
    while True:
        ended = reap(halted)
        if pid in ended:
            return ended[pid], stalled_at, waited_in
        if fence and fence.is_paused:
            halted.clear()  # by the fence, which says so itself
        elif halted.get(pid, is_halted) != is_halted:
            is_halted = halted[pid]
            words = _describe_halt(settings, pid) if is_halted else "the program continues"
            console.print_line(f"{settings.task}: {words}")
        pauses = [watchdog.interval_seconds]
        if fence:
            if fence.must_end():
                signals.kill_group()
            pauses.append(fence.pause_seconds())
        is_paused = bool(fence and fence.is_paused)
        if stalled_at is None and not signals.stop_signal and watchdog.is_expired(is_paused):
            waited_in = _find_wait(pid)
            stalled_at = time.monotonic()
            os.kill(pid, signal.SIGTERM)
        if signals.kept_back:
            leader_wait = leader_wait or _wait_for_leader(settings, signals)
            if leader_wait.is_over:
                signals.pass_on_stop()
        kill_at = _find_kill_time(settings.stop_grace_seconds, signals, stalled_at)
        if kill_at is not None:
            remaining = kill_at - time.monotonic()
            if remaining <= 0:
                signals.kill_group()
            pauses[0] = remaining if remaining > 0 else _KILL_AGAIN_SECONDS
        signals.wait(min((pause for pause in pauses if pause is not None), default=None))


def _find_wait(pid: int) -> str:
    from trainchart_launcher.stacks import describe_stacks, read_stacks

    return describe_stacks(read_stacks(pid))


def _wait_for_leader(settings: Settings, signals: Signals) -> LeaderWait:
    from trainchart_launcher.leader_wait import LeaderWait

    wait = LeaderWait(settings, signals.stopped_at + settings.save_wait_seconds, signals.wake)
    wait.start()
    return wait


def _describe_halt(settings: Settings, pid: int) -> str:
    is_alone = sum(role.replicas for role in settings.cluster.roles.values()) == 1
    halted = f"{contract.HALTED}{'' if is_alone else ', and the others wait for it'}"
    if settings.addresses:  # of a local run
        return f"{halted}: kill -CONT {pid} resumes it"
    # The image may have no program named kill.
    resume = f"python3 -c 'import os; os.kill({pid}, {int(signal.SIGCONT)})'"
    namespace = f" -n {settings.namespace}" if settings.namespace else ""
    command = f"kubectl exec {settings.pod_name}{namespace} -c {contract.TRAINING_CONTAINER} -- {resume}"
    return (
        f"{halted}: {command} resumes it. "
        "If the pod is deleted instead, its program starts again from the last checkpoint"
    )


def _find_kill_time(grace_seconds: float, signals: Signals, stalled_at: Optional[float]) -> Optional[float]:
    """Return the time.monotonic() until which a program asked to end may take its time; None if it was not asked."""
    asked_at = signals.stopped_at if signals.stop_signal else stalled_at
    if asked_at is None:
        return None
    return asked_at + max(grace_seconds - _KILL_MARGIN_SECONDS, grace_seconds / 2)


def _drain(pumps: Sequence[Pump], grace_seconds: float, signals: Signals) -> None:
    """Wait until all output is passed on, however slow the reader, not for strangers with an open pipe."""
    ends = [0 for _ in pumps]
    began = quiet_since = time.monotonic()
    while any(pump.is_alive() for pump in pumps):
        if time.monotonic() - began < _QUIET_SECONDS:
            # What comes later is not the program's. More than once: a pump may hold what it has not counted yet.
            ends = [max(end, pump.find_end()) for end, pump in zip(ends, pumps)]
        elif all(pump.has_passed_on(end) for end, pump in zip(ends, pumps)):
            return
        if not all(pump.is_quiet() for pump in pumps):
            quiet_since = time.monotonic()
        if time.monotonic() - quiet_since >= _QUIET_SECONDS:
            return
        kill_at = _find_kill_time(grace_seconds, signals, None)
        if kill_at is not None and time.monotonic() >= kill_at:
            return
        for pump in pumps:
            pump.join(0.02)


def _describe_refused_start(program: str, err: Exception, started_at: float) -> AttemptEnd:
    from trainchart_launcher.refused_start import describe_refused_start

    code = NOT_FOUND if isinstance(err, FileNotFoundError) else NOT_EXECUTABLE
    lines: List[str] = [describe_refused_start(program, err)]
    return AttemptEnd(code, None, started_at, time.time(), 0.0, lines, lines)
