"""Which clusters run on this machine, and what those that were killed left behind.

A slot is a locked file that names the run's folder. The lock is held by every process of the cluster's frame and goes
with the last of them, so a slot whose lock is free and whose file is not empty is a leftover, whoever it belonged to.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .cgroups import remove_cgroup
from .config import SLOTS, ClusterConfig
from .network import remove_interface

_FOLDER = Path("/run/lock/trainchart-test-clusters")


class NoSlotError(Exception):
    """As many clusters run on this machine as there are slots."""


@dataclass(frozen=True)
class Slot:
    """A slot that this process has locked."""

    number: int
    descriptor: int
    """Open file that carries the lock; pass it to what shall hold the slot, and close it here."""


def take_slot(folder: Path) -> Slot:
    """Lock a free slot for the cluster in this folder; NoSlotError when all are taken."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        descriptor = _lock(number)
        if descriptor is None:
            continue
        _clean(number, descriptor)
        os.pwrite(descriptor, str(folder).encode(), 0)
        return Slot(number, descriptor)
    raise NoSlotError(f"all {SLOTS} slots of {_FOLDER} are taken")


def remove_leftovers() -> list[Path]:
    """Remove what killed runs left, whoever started them; return their folders."""
    removed = []
    for number in _used():
        descriptor = _lock(number)
        if descriptor is not None:
            folder = _clean(number, descriptor)
            os.close(descriptor)
            if folder:
                removed.append(folder)
    return removed


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
        yield from (n for n in range(SLOTS) if (_FOLDER / str(n)).exists() and (_FOLDER / str(n)).stat().st_size)


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
        remove_cgroup(cluster.cgroup(node))
    text = os.pread(descriptor, 4096, 0).decode()
    if not text:
        return None
    folder = Path(text)
    if folder.exists():
        shutil.rmtree(folder)
    os.ftruncate(descriptor, 0)
    return folder
