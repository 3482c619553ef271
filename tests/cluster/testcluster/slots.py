"""Which clusters run on this machine, and what those that were killed left behind.

A slot is a locked file that names the run's folder. The lock is held by every process of the cluster's frame and goes
with the last of them, so a slot whose lock is free and whose file is not empty is a leftover, whoever it belonged to.
What the frame ran may take a moment longer to die.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cgroups import remove_cgroup
from .config import SLOTS, ClusterConfig
from .network import remove_interface

_FOLDER = Path("/run/lock/trainchart-test-clusters")
_DEADLINE_SECONDS = 20
"""How long what was killed may take to be gone."""


class NoSlotError(Exception):
    """As many clusters run on this machine as there are slots, or somebody else may write what slots say."""


@dataclass(frozen=True)
class Slot:
    """A slot that this process has locked."""

    number: int
    descriptor: int
    """Open file that carries the lock; pass it to what shall hold the slot, and close it here."""


def take_slot(folder: Path) -> Slot:
    """Lock a free slot for the cluster in this folder; NoSlotError when all are taken."""
    _FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    _refuse_foreign_folder()
    for number in range(SLOTS):
        descriptor = _lock(number)
        if descriptor is None:
            continue
        try:
            _clean(number, descriptor)
            os.pwrite(descriptor, str(folder).encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
        return Slot(number, descriptor)
    raise NoSlotError(f"all {SLOTS} slots of {_FOLDER} are taken")


def remove_leftovers() -> list[Path]:
    """Remove what killed runs left, whoever started them; return their folders."""
    removed = []
    for number in _used():
        descriptor = _lock(number)
        if descriptor is not None:
            try:
                folder = _clean(number, descriptor)
            finally:
                os.close(descriptor)
            if folder:
                removed.append(folder)
    return removed


def remove_forgotten(home: Path, booted: float) -> list[Path]:
    """Remove folders of clusters below `home` that ended with the machine, which started anew at `booted`; return them.

    Slots do not outlive that, folders do.
    """
    folders = home.iterdir() if home.is_dir() else ()
    old = [folder for folder in folders if _is_older(folder, booted)]
    # A clock that was set later makes a folder seem older than it is.
    forgotten = [folder for folder in old if folder not in find_folders()]
    for folder in forgotten:
        _remove_folder(folder)
    return forgotten


def find_folders() -> list[Path]:
    """Return the folders of the clusters that are running."""
    running = []
    for number in _used():
        descriptor = _lock(number)
        if descriptor is None:
            running.append(Path((_FOLDER / str(number)).read_text()))
        else:
            os.close(descriptor)
    return running


def _used() -> Iterator[int]:
    if _FOLDER.is_dir():
        _refuse_foreign_folder()
        yield from (n for n in range(SLOTS) if (_FOLDER / str(n)).exists() and (_FOLDER / str(n)).stat().st_size)


def _refuse_foreign_folder() -> None:
    # Anybody may make a folder in /run/lock, and what a slot names is removed by root.
    found = _FOLDER.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022
    if not is_ours:
        raise NoSlotError(f"{_FOLDER} can be written by others than root: look what is there, and remove it")


def _lock(number: int) -> int | None:
    descriptor = os.open(_FOLDER / str(number), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _clean(number: int, descriptor: int) -> Path | None:
    cluster = ClusterConfig(slot=number)
    remove_interface(cluster)
    for node in cluster.nodes:
        remove_cgroup(cluster.cgroup(node), _DEADLINE_SECONDS)
    text = os.pread(descriptor, 4096, 0).decode()
    if not text:
        return None
    folder = Path(text)
    _remove_folder(folder)
    os.ftruncate(descriptor, 0)
    return folder


def _is_older(folder: Path, moment: float) -> bool:
    try:
        return folder.stat().st_mtime < moment
    # The end of another run removes its folder meanwhile.
    except FileNotFoundError:
        return False


def _remove_folder(folder: Path) -> None:
    """Remove a folder into which processes that have just been killed may write for a moment."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
