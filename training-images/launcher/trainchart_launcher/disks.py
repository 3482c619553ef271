"""Which file systems of this container are full: a program that finds no space left seldom says where."""

from __future__ import annotations

import os
from typing import Callable, Iterable, List, NamedTuple, Tuple

from trainchart_runtime.contract import NO_INODES

_MOUNTS = "/proc/self/mounts"
_LOCAL = ("tmpfs", "overlay", "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs")
"""Others may not answer for as long as their server is away."""
_FULL_BYTES = 1 << 20
_MEBIBYTE = 1 << 20
_NAMED = 3


class Space(NamedTuple):
    """The size of one file system, and what is left of it for a program without privileges."""

    size: int
    free: int
    inodes: int = 0
    """0 where the file system has no fixed number of them."""
    free_inodes: int = 0


def describe_full_disks() -> str:
    """Return which folders lie on a full file system, as an addition to an error line; "" where none is found."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as file:
            found = find_full(file, _measure)
    except OSError:
        return ""
    full = [f"{path} of {space.size // _MEBIBYTE} MiB" for path, space in found if space.free < _FULL_BYTES]
    parts = [f"full: {', '.join(full[:_NAMED])}"] if full else []
    used_up = [each for each in found if each[1].free >= _FULL_BYTES][:_NAMED]
    parts += [f"{NO_INODES}{path}, which has {space.inodes} files and folders" for path, space in used_up]
    return f" ({'; '.join(parts)})" if parts else ""


def find_full(mounts: Iterable[str], measure: Callable[[str], Space]) -> List[Tuple[str, Space]]:
    """Return the folders, and what `measure` says of them, that are mounted by lines of /proc/mounts and are full."""
    found = []
    for line in mounts:
        _, path, kind, options = (*line.split(" "), "", "", "", "")[:4]
        if kind not in _LOCAL or "rw" not in options.split(","):
            continue
        path = path.replace("\\040", " ")
        try:
            space = measure(path)
        except OSError:
            continue
        if space.size and (space.free < _FULL_BYTES or (space.inodes and not space.free_inodes)):
            found.append((path, space))
    return found


def _measure(path: str) -> Space:
    if not os.path.isdir(path):
        # Kubernetes mounts single files too, such as /etc/hosts.
        return Space(0, 0)
    seen = os.statvfs(path)
    return Space(seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize, seen.f_files, seen.f_favail)
