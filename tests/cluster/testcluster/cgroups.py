"""The cgroups of the nodes, in cgroup v1 and v2: the only thing of a cluster that no namespace takes away with it."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = frozenset(("cpu", "cpuset", "hugetlb", "io", "memory", "pids"))
"""Of cgroup v2: what kubelet and runc set limits with."""


def create_cgroup(name: str) -> None:
    """Make a cgroup in every hierarchy; a kubelet refuses to start where its root is missing."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        folder.mkdir(exist_ok=True)
        # In cgroup v1, a group without CPUs and memory nodes takes no process.
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (folder / setting).exists() and _is_v1():
                (folder / setting).write_text((hierarchy / setting).read_text())
    if not _is_v1():
        known, enabled = (
            set((_ROOT / f"cgroup.{file}").read_text().split()) for file in ("controllers", "subtree_control")
        )
        # Others are none of a kubelet's business, and one that cannot be enabled has the kernel refuse all.
        if missing := sorted(_CONTROLLERS & known - enabled):
            (_ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in missing))


def remove_cgroup(name: str, deadline_seconds: float) -> None:
    """Remove a cgroup and all below it, once the processes in it, which were killed before, are gone.

    Raises OSError when a process is still in it at the deadline.
    """
    deadline = time.monotonic() + deadline_seconds
    # `unified` of a v1 machine too, where runc makes groups unasked.
    for group in [_ROOT / name, *_ROOT.glob(f"*/{name}")]:
        while group.exists():
            try:
                for folder, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(FileNotFoundError):
                        Path(folder).rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def read_processes(name: str, container_id: str) -> list[int]:
    """Return the processes of a container below a node's cgroup, oldest first, as this process numbers them."""
    hierarchy = "memory" if _is_v1() else "."
    for group in find_cgroups(_ROOT / hierarchy / name, f"*{container_id}*"):
        # Of a container that was started again, the one before it may be on its way out.
        with contextlib.suppress(OSError):
            return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    return []


def find_cgroups(root: Path, pattern: str) -> Iterator[Path]:
    """Yield the cgroups below `root` whose names fit a shell pattern; unlike Path.glob, whatever vanishes meanwhile."""
    for folder, names, _ in os.walk(root):
        yield from (Path(folder, name) for name in fnmatch.filter(names, pattern))


def _is_v1() -> bool:
    return not (_ROOT / "cgroup.controllers").exists()


def _hierarchies() -> Iterator[Path]:
    if not _is_v1():
        yield _ROOT
        return
    for entry in _ROOT.iterdir():
        # `cpu` may be a link to `cpu,cpuacct`, and `unified` is a v2 mount that v1 machines do not use.
        if entry.is_dir() and not entry.is_symlink() and (entry / "tasks").exists():
            yield entry
