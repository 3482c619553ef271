"""What a launcher says about the end of an attempt: its diagnosis, its exit code, its termination message.

Not needed for a program's start, so nothing of it is loaded before.
"""

from __future__ import annotations

import os
import re
import stat
import time
from typing import Mapping, Optional, Sequence

from trainchart_launcher import state
from trainchart_launcher.attempt import AttemptEnd
from trainchart_launcher.cgroup import read_limit_mib
from trainchart_launcher.console import print_line
from trainchart_launcher.disks import describe_full_disks
from trainchart_launcher.settings import Settings, find_termination_file
from trainchart_runtime import causes, contract
from trainchart_runtime.classify import ERROR_LIMIT, Diagnosis, Ending, classify
from trainchart_runtime.log_text import hide_credentials, shorten
from trainchart_runtime.restart import Attempts
from trainchart_runtime.termination import FAILURES_KEPT, LINE_LIMIT, Failure, Termination, dump_termination
from trainchart_runtime.throttling import Throttling, describe_throttling


def diagnose(
    end: AttemptEnd, command: Sequence[str], memory_kills: int, throttling: Optional[Throttling] = None
) -> Diagnosis:
    """Return why an attempt ended, during which the kernel killed so many processes for memory.

    `throttling` is that of its last minute.
    """
    diagnosis = classify(
        Ending(
            exit_code=end.exit_code,
            signal=end.signal,
            lines=end.streams,
            command=command,
            stopped=end.stopped,
            stalled=end.stalled,
            superseded_by=end.superseded_by,
            lost_storage=end.lost_storage,
            memory_kills=memory_kills,
            memory_limit_mib=read_limit_mib() if memory_kills else None,
        )
    )
    if diagnosis.cause in (causes.PERMISSION_DENIED, causes.DISK_FULL):
        is_full = diagnosis.cause is causes.DISK_FULL
        remark = describe_full_disks() if is_full else _describe_owner(diagnosis.error)
        return diagnosis._replace(error=diagnosis.error[: ERROR_LIMIT - len(remark)] + remark)
    if diagnosis.cause is causes.NO_PROGRESS:
        words = describe_throttling(throttling)
        found = [f"the container was {words}"] if words else []
        found += [f"the program waited in {end.waited_in}"] if end.waited_in else []
        remark = f"{' ' if diagnosis.error else ''}({'; '.join(found)})" if found else ""
        return diagnosis._replace(error=diagnosis.error[: ERROR_LIMIT - len(remark)] + remark)
    return diagnosis


def _describe_owner(error: str) -> str:
    """Return whose the file or folder is that `error` names, or the nearest one above it that can be seen."""
    found = re.search(r"'(/[^']+)'", error)
    path = found.group(1) if found else ""
    while path:
        try:
            seen = os.stat(path)
        except OSError:
            path = os.path.dirname(path) if path != "/" else ""
            continue
        mode = stat.S_IMODE(seen.st_mode)
        owner = f"{path} belongs to {seen.st_uid}:{seen.st_gid}, mode {mode:04o}"
        return f" ({owner}; the program runs as {os.geteuid()}:{os.getegid()})"[: ERROR_LIMIT // 2]
    return ""


def note_failure(
    failures: Sequence[Failure], attempts: Attempts, end: AttemptEnd, diagnosis: Diagnosis
) -> Sequence[Failure]:
    """Return the last failures with one more, which is counted in `attempts` already."""
    code = _resolve_exit_code(end, 0)
    new = Failure(attempts.ended, end.finished_at, diagnosis.cause.name, code, shorten(diagnosis.error, LINE_LIMIT))
    return (*failures, new)[-FAILURES_KEPT:]


def describe(settings: Settings, attempts: Attempts, end: AttemptEnd, diagnosis: Diagnosis) -> str:
    """Return one line about an attempt's end for the log."""
    how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
    error = f": {diagnosis.error}" if diagnosis.error else ""
    return (
        f"{settings.task}: attempt {attempts.started} ended after {end.ran_seconds:.1f} s, "
        f"{diagnosis.cause.name} ({how}){error}"
    )


def resolve_termination(
    settings: Settings, attempts: Attempts, end: AttemptEnd, diagnosis: Diagnosis, stop_signal: int
) -> Termination:
    """Return the termination message of a task that has come to its end."""
    progress = state.read_progress(settings)
    return Termination(
        cause=diagnosis.cause.name,
        exit_code=_resolve_exit_code(end, stop_signal),
        task_type=settings.task.task_type,
        task_index=settings.task.task_index,
        run_id=settings.run_id,
        attempt=attempts.started,
        own_failures=attempts.own_failures,
        peer_failures=attempts.peer_failures,
        signal=end.signal,
        error=diagnosis.error,
        step=progress.step,
        metrics=progress.metrics,
        started_at=end.started_at,
        finished_at=end.finished_at,
        lines=[hide_credentials(line) for line in end.output],
    )


def refuse(problem: str, environ: Mapping[str, str]) -> int:
    """Report that chart and launcher disagree, and return the exit code for it."""
    print_line(problem)
    now = time.time()
    message = Termination(
        cause=causes.CONTRACT_BROKEN.name,
        exit_code=contract.EXIT_CONFIG,
        task_type=environ.get(contract.TASK_TYPE, ""),
        run_id=environ.get(contract.RUN_ID, ""),
        error=problem,
        started_at=now,
        finished_at=now,
    )
    state.write_termination(find_termination_file(environ), dump_termination(message))
    return contract.EXIT_CONFIG


def _resolve_exit_code(end: AttemptEnd, stop_signal: int) -> int:
    if end.stopped:
        return 128 + (stop_signal or end.signal or 0)
    if end.superseded_by:
        return contract.EXIT_SUPERSEDED
    if end.lost_storage:
        return contract.EXIT_STORAGE_LOST
    if end.signal:
        return 128 + end.signal
    # A program that exits 0 when the watchdog ends it has not succeeded.
    return end.exit_code or int(end.stalled)
