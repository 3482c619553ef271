"""Notices a program that does nothing for long, and says in the log where it waits.

A hang shows in no status: the process is there. Nothing printed, no step and hardly any CPU time for minutes is no
proof, so nothing is ended for it (that is run.noProgressTimeout's). But which task waits where is what tells a
deadlock from a wait for a peer. A program that computes for minutes without output or a step may be in an endless loop:
where it is then is said, too.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Optional, Tuple

from trainchart_launcher.console import print_line
from trainchart_launcher.stacks import (
    describe_dead_processes,
    describe_stacks,
    describe_unread_pipe,
    find_group,
    read_process,
    read_stacks,
)
from trainchart_runtime import contract
from trainchart_runtime.cluster import CHIEF, WORKER, Task

_QUIET_SECONDS = 150.0
"""Less than after what time `why` takes a run for one that hangs."""
_BUSY_TIMES = 1.5
"""How many times as long a program may compute: it may load or compile."""
_PAUSE_SECONDS = 10.0
_BUSY_CORES = 0.05
"""TensorFlow's threads that wait for a peer use about a hundredth."""
_LINES_SHOWN = 60
_STOPPED = "Tt"
"""States of a process that a signal or a debugger has halted: it cannot answer."""
_USER_TIME, _SYSTEM_TIME = 11, 12
"""Among the fields that read_process returns."""


class StandstillWatch:
    """Looks at the process group of one attempt until it is stopped."""

    def __init__(
        self, task: Task, group: int, progress_file: str, count_output: Callable[[], int], *, quiet: float = 0.0
    ) -> None:
        self._task = task
        self._group = group
        self._progress_file = progress_file
        self._count_output = count_output
        self._quiet_seconds = quiet or _QUIET_SECONDS
        self._over = threading.Event()

    def start(self) -> None:
        """Look from now on, at tasks that train: a parameter server or evaluator may well wait for hours."""
        if self._task.task_type in (CHIEF, WORKER) and os.path.isdir("/proc/self/fd"):
            threading.Thread(target=self._watch, daemon=True, name="standstill").start()

    def stop(self) -> None:
        self._over.set()

    def _watch(self) -> None:
        pause = min(_PAUSE_SECONDS, self._quiet_seconds / 5)
        seen, changed, since = self._look(), time.monotonic(), time.monotonic()
        used, looked_at, waits_told, works_told = 0.0, time.monotonic(), False, False
        while not self._over.wait(pause):
            found, now = self._look(), time.monotonic()
            busy = self._read_cpu_seconds()
            is_busy = busy - used > _BUSY_CORES * (now - looked_at)
            used, looked_at = busy, now
            if found != seen:
                seen, changed, since, waits_told, works_told = found, now, now, False, False
                continue
            since = now if is_busy else since
            if not waits_told and now - since >= self._quiet_seconds:
                waits_told = self._tell_wait(now - since)
            elif is_busy and not works_told and now - changed >= _BUSY_TIMES * self._quiet_seconds:
                works_told = self._tell_work(now - changed)

    def _tell_wait(self, seconds: float) -> bool:
        """Print where the program waits; return whether that could be found out, or never will."""
        state = (read_process(self._group) or [""])[0]
        if state in _STOPPED:
            return False
        lines = read_stacks(self._group)
        where = describe_stacks(lines)
        if where and not self._over.is_set():
            # The main thread comes last.
            for line in list(filter(None, lines))[-_LINES_SHOWN:]:
                print_line(f"{contract.STACK_LINE}{line}")
            words = f"no output, no step and hardly any CPU time for {seconds:.0f} s"
            more = describe_unread_pipe(self._group) + describe_dead_processes(self._group)
            print_line(f"{self._task}: {words}{contract.WAITS_IN}{where}{more}")
        return True

    def _tell_work(self, seconds: float) -> bool:
        """Print in one line where the program computes, since it may well be about to make a step; return True."""
        where = describe_stacks(read_stacks(self._group))
        if where and not self._over.is_set():
            print_line(f"{self._task}: no output and no step for {seconds:.0f} s{contract.BUSY_IN}{where}")
        return True

    def _look(self) -> Tuple[int, Optional[Any]]:
        try:
            status = os.stat(self._progress_file)
            return self._count_output(), (status.st_ino, status.st_mtime_ns)
        except OSError:
            return self._count_output(), None

    def _read_cpu_seconds(self) -> float:
        ticks = 0
        for pid in find_group(self._group):
            fields = read_process(pid)
            ticks += int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME]) if len(fields) > _SYSTEM_TIME else 0
        return ticks / os.sysconf("SC_CLK_TCK")
