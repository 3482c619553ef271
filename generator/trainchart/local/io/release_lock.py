"""The lock of a local run: held as long as the run goes on, so it says which runs live, and who to ask for an end.

The kernel drops it with the process, however that ends: a lock that is held is the proof that the run goes on.
"""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainchart.errors import ToolError

_LOCKS = ".locks"
_TRIES = 5
_PAUSE_SECONDS = 0.02
"""A process that looks whether the lock is held has it for a moment."""


@contextmanager
def hold_lock(runs_folder: Path, release: str) -> Iterator[None]:
    """Hold the lock of the run until the block or the process ends; ToolError where another process has it."""
    path = _lock_file(runs_folder, release)
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as err:
        raise ToolError(
            f"cannot write {path}: {err.strerror or err}",
            hint="choose a folder with room that you may write to: --runs-dir",
        ) from err
    try:
        if not any(_take(descriptor, pause) for pause in [_PAUSE_SECONDS] * (_TRIES - 1) + [0.0]):
            raise ToolError(
                f"the release {release} is running already",
                hint=f"wait until it ends, or stop it: trainchart stop {release}",
            )
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {platform.node()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_running(runs_folder: Path, release: str) -> bool:
    """Return whether a process is running the run now."""
    try:
        descriptor = os.open(_lock_file(runs_folder, release), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def ask_to_stop(runs_folder: Path, release: str) -> None:
    """Ask the process of a run that goes on to stop it in order. Raises ToolError where it is out of reach."""
    process, _, host = _lock_file(runs_folder, release).read_text().strip().partition(" ")
    if host != platform.node():
        raise ToolError(f"{release} runs on the machine {host}", hint="stop it there")
    try:
        os.kill(int(process), signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as err:
        raise ToolError(f"{release} runs under another user (process {process})", hint="ask them to stop it") from err


def _take(descriptor: int, pause_seconds: float) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(pause_seconds)
        return False
    return True


def _lock_file(runs_folder: Path, release: str) -> Path:
    return runs_folder / _LOCKS / f"{release}.lock"
