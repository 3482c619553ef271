"""Looks at the machine's processes: who belongs to a pod, what they use, how to end them. Owner of psutil.

A process belongs to a pod when it is in the pod's session or carries the pod's mark in its environment, so
that neither a grandchild nor a daemon that left the session is missed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import psutil

_SWEEPS = 50
"""A process that forks faster than we look needs several sweeps; more than this would be a fork bomb."""


@dataclass(frozen=True)
class Usage:
    """What all processes of one session use together."""

    cpu_seconds: float
    """Since their starts; falls when a process ends."""
    memory_bytes: int


def kill_sessions(sessions: Collection[int], mark_name: str, mark_prefix: str) -> None:
    """Kill every process in `sessions` or with a `mark_name` variable that starts with `mark_prefix`."""
    for _ in range(_SWEEPS):
        found = list(_members(sessions, mark_name, mark_prefix))
        if not found:
            return
        for process in found:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        psutil.wait_procs(found, timeout=0.2)


def sample_usage(sessions: Collection[int]) -> Mapping[int, Usage]:
    """Return the usage of every session that has a living process."""
    totals: dict[int, Usage] = {}
    for process in psutil.process_iter():
        try:
            session = os.getsid(process.pid)
            if session not in sessions:
                continue
            with process.oneshot():
                times, memory = process.cpu_times(), process.memory_info().rss
        except (psutil.Error, OSError):
            continue
        so_far = totals.get(session, Usage(0.0, 0))
        totals[session] = Usage(so_far.cpu_seconds + times.user + times.system, so_far.memory_bytes + memory)
    return totals


def find_program(launcher_pid: int) -> int | None:
    """Return the process id of the program that a launcher runs, or None while it has none."""
    try:
        for child in psutil.Process(launcher_pid).children():
            if child.status() != psutil.STATUS_ZOMBIE:
                return child.pid
    except psutil.Error:
        return None
    return None


def _members(sessions: Collection[int], mark_name: str, mark_prefix: str) -> Iterator[psutil.Process]:
    own_pid = os.getpid()
    for process in psutil.process_iter():
        if process.pid == own_pid:
            continue
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) in sessions or _mark(process, mark_name).startswith(mark_prefix):
                yield process
        except (psutil.Error, OSError):
            continue


def _mark(process: psutil.Process, mark_name: str) -> str:
    try:
        return str(process.environ().get(mark_name, ""))
    except (psutil.Error, OSError):
        # Another user's process: it cannot be one of ours.
        return ""
