"""Notices a program that does nothing for long, and says in the log where it waits.

A hang shows in no status: the process is there. Nothing printed, no step and hardly any CPU time for minutes is no
proof, so nothing is ended for it (that is run.noProgressTimeout's). But which task waits where is what tells a
deadlock from a wait for a peer.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Callable, Optional, Tuple

from trainchart_launcher.console import print_line
from trainchart_launcher.stacks import describe_stacks, find_group, read_process, read_stacks
from trainchart_runtime import contract
from trainchart_runtime.cluster import CHIEF, WORKER, Task

_QUIET_SECONDS = 150.0
"""Less than after what time `why` takes a run for one that hangs."""
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
        seen, since, used, looked_at, is_told = self._look(), time.monotonic(), 0.0, time.monotonic(), False
        while not self._over.wait(pause):
            found, now = self._look(), time.monotonic()
            busy = self._read_cpu_seconds()
            is_busy = busy - used > _BUSY_CORES * (now - looked_at)
            used, looked_at = busy, now
            if found != seen:
                seen, since, is_told = found, now, False
            elif is_busy:
                since = now
            elif not is_told and now - since >= self._quiet_seconds:
                is_told = self._tell(now - since)

    def _tell(self, seconds: float) -> bool:
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
            print_line(f"{self._task}: {words}{contract.WAITS_IN}{where}")
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
