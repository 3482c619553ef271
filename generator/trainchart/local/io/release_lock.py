"""The lock of a local run: held as long as the run goes on, so it says which runs live, and who to ask for an end.

The kernel drops it with the process, however that ends: a lock that is held is the proof that the run goes on.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import re
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.files import find_lock_holders

_LOCKS = ".locks"
_LONGEST = 1024
"""Bytes; a lock holds a process id and the name of a machine."""
_NAMED = re.compile(rb"(\d{1,9}) ([!-~]+)\n")
_FIRST_PROCESS = 2
"""1 is a run in a container of its own only, and has the lock then; to the kernel, 0 is a group of processes."""
_TRIES = 5
_PAUSE_SECONDS = 0.02
"""A process that looks whether the lock is held has it for a moment."""


@contextmanager
def hold_lock(runs_folder: Path, release: str) -> Iterator[None]:
    """Hold the lock of the run until the block or the process ends; ToolError where another process has it."""
    path = _lock_file(runs_folder, release)
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = _open(path, os.O_RDWR | os.O_CREAT)
    except OSError as err:
        raise ToolError(
            f"cannot write {path}: {err.strerror or err}",
            hint="choose a writable folder with enough space: --runs-dir",
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


@contextmanager
def hold_checkpoints(folder: str) -> Iterator[None]:
    """Keep other local runs from a folder of checkpoints until the block or the process ends; a URI is not kept.

    Raises:
        ToolError: another run has it: each would remove and overwrite the other's.
    """
    descriptor = None
    if folder.startswith("/"):
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            assert descriptor is not None
            os.close(descriptor)
            raise ToolError(
                f"another run writes its checkpoints to {folder}",
                hint="wait until it ends, or give each run its own claim, or a subPath of the volume",
            ) from error
        except OSError:
            pass  # what cannot be written says so when it is; some network file systems know no locks
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_running(runs_folder: Path, release: str) -> bool:
    """Return whether a process is running the run now."""
    try:
        descriptor = _open(_lock_file(runs_folder, release), os.O_RDONLY)
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
    process, host, holders = _read_holder(_lock_file(runs_folder, release))
    if host and host != platform.node():
        raise ToolError(f"{release} runs on the machine {host}", hint="stop it there")
    # What the file says may be anyone's: only a process that holds the lock is the run's.
    if process not in holders if holders else process < _FIRST_PROCESS:
        held = f" (process {', '.join(map(str, sorted(holders)))})" if holders else ""
        raise ToolError(
            f"a program other than trainchart run holds the lock of {release}{held}", hint="wait, or stop that program"
        )
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as err:
        raise ToolError(f"{release} runs under another user (process {process})", hint="ask them to stop it") from err


def _read_holder(lock: Path) -> tuple[int, str, set[int]]:
    """Return the process and the machine that a lock names, 0 and "" for others, and who holds it as far as known."""
    try:
        descriptor = _open(lock, os.O_RDONLY)
    except OSError:
        return 0, "", set()
    try:
        named = _NAMED.fullmatch(os.read(descriptor, _LONGEST))
        holders = {process for process in find_lock_holders(descriptor) if process > 0}
    finally:
        os.close(descriptor)
    return (int(named[1]), named[2].decode(), holders) if named else (0, "", holders)


def _open(path: Path, flags: int) -> int:
    """Open a lock. Raises OSError for a link or a pipe, which may come with the files of others."""
    if path.parent.is_symlink():
        raise OSError(errno.ELOOP, "its folder is a symbolic link")
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link")
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return descriptor


def _take(descriptor: int, pause_seconds: float) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(pause_seconds)
        return False
    return True


def _lock_file(runs_folder: Path, release: str) -> Path:
    return runs_folder / _LOCKS / f"{release}.lock"
