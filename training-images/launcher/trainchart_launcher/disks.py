"""Which file systems of this container are full: a program that finds no space left seldom says where."""

from __future__ import annotations

import os
from typing import Callable, Iterable, List, NamedTuple, Tuple

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


def describe_full_disks() -> str:
    """Return which folders lie on a full file system, as an addition to an error line; "" where none is found."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as file:
            found = find_full(file, _measure)
    except OSError:
        return ""
    names = ", ".join(f"{path} of {space.size // _MEBIBYTE} MiB" for path, space in found[:_NAMED])
    return f" (full: {names})" if names else ""


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
        if space.size and space.free < _FULL_BYTES:
            found.append((path, space))
    return found


def _measure(path: str) -> Space:
    if not os.path.isdir(path):
        # Kubernetes mounts single files too, such as /etc/hosts.
        return Space(0, 0)
    seen = os.statvfs(path)
    return Space(seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize)
