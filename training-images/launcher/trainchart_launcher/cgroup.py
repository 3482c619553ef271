"""What the kernel did to this container for memory and CPU, and what the container uses.

Read-only, and both versions of cgroups. Where nothing can be read nothing is known, and a kill stays a kill.
"""

from __future__ import annotations

import os
from typing import Iterator, NamedTuple, Optional

_MEBIBYTE = 1 << 20
_COUNT_DIGITS = 20
_NO_LIMIT = 1 << 60
"""Version 1 says "no limit" with a number near 2^63."""


class _Layout(NamedTuple):
    """Where one version of cgroups keeps its files."""

    root: str
    events: str
    limit: str
    memory: str
    reclaimable: str
    """Line of memory.stat with the file pages that the kernel drops first."""


_V1 = _Layout(
    "/sys/fs/cgroup/memory",
    "memory.oom_control",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)
_V2 = _Layout("/sys/fs/cgroup", "memory.events", "memory.max", "memory.current", "inactive_file")
_V1_CPU = "/sys/fs/cgroup/cpu"
_V1_USED_CPU = "/sys/fs/cgroup/cpuacct"


class CpuPeriods(NamedTuple):
    """How the kernel holds a container to its CPU limit: in each period it may use so much CPU time, then it stops."""

    throttled: int
    """Periods in which it was stopped, since the container began."""
    seconds: float
    """Of one period."""
    limit: float
    """CPUs."""


class MemoryKills:
    """Counts the processes of this container that the kernel has killed for memory, from one look to the next."""

    def __init__(self) -> None:
        self._seen: Optional[int] = None

    def begin(self) -> None:
        """Start to count, if not done yet."""
        if self._seen is None:
            self._seen = _read_kills()

    def count(self) -> int:
        """Return how many were killed since the last look; 0 as well where it is unknown."""
        before, self._seen = self._seen, _read_kills()
        return _subtract(self._seen, before)

    def peek(self) -> int:
        """Return how many were killed since the last look, and let the next look count them too."""
        return _subtract(_read_kills(), self._seen)


def read_limit_mib() -> Optional[int]:
    """Return the container's memory limit; None without one, or where it cannot be read."""
    for folder, layout in _candidates():
        text = _read(f"{folder}/{layout.limit}")
        if text:
            # Version 2 says "max".
            limit = int(text) if text.strip().isdigit() else _NO_LIMIT
            return None if limit >= _NO_LIMIT else limit // _MEBIBYTE
    return None


def read_memory_bytes() -> Optional[int]:
    """Return the working set as the kubelet counts it; None where it cannot be read."""
    for folder, layout in _candidates():
        used = _parse_number(_read(f"{folder}/{layout.memory}"))
        if used is not None:
            reclaimable = _find_number(_read(f"{folder}/memory.stat"), layout.reclaimable)
            return max(used - (reclaimable or 0), 0)
    return None


def read_cpu_seconds() -> Optional[float]:
    """Return the CPU time that the container has used; None where it cannot be read."""
    for folder, layout in _candidates():
        if layout is _V2:
            used = _find_number(_read(f"{folder}/cpu.stat"), "usage_usec")
            if used is not None:
                return used / 1e6
    for folder in _list_v1_folders("cpuacct", _V1_USED_CPU):
        used = _parse_number(_read(f"{folder}/cpuacct.usage"))
        if used is not None:
            return used / 1e9
    return None


def read_cpu_periods() -> Optional[CpuPeriods]:
    """Return how the container is held to its CPU limit; None without a limit, or where it cannot be read."""
    v2 = [(folder, ("cpu.max",)) for folder, layout in _candidates() if layout is _V2]
    v1 = [(folder, ("cpu.cfs_quota_us", "cpu.cfs_period_us")) for folder in _list_v1_folders("cpu", _V1_CPU)]
    for folder, names in (*v2, *v1):
        throttled = _find_number(_read(f"{folder}/cpu.stat"), "nr_throttled")
        if throttled is not None:
            words = " ".join(_read(f"{folder}/{name}") for name in names).split()
            # Without a limit, the quota is "max", or -1 in version 1.
            quota, period = map(_parse_number, words) if len(words) == 2 else (None, None)
            return CpuPeriods(throttled, period / 1e6, quota / period) if quota and period else None
    return None


def _list_v1_folders(controller: str, root: str) -> Iterator[str]:
    for line in _read("/proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controller in controllers.split(","):
            yield os.path.normpath(root + path)
            yield root


def _find_number(text: str, wanted: str) -> Optional[int]:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == wanted:
            return _parse_number(value)
    return None


def _parse_number(text: str) -> Optional[int]:
    """Return a count of the kernel: 64 bits, so at most 20 digits."""
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _COUNT_DIGITS else None


def _subtract(now: Optional[int], before: Optional[int]) -> int:
    return 0 if before is None or now is None else max(now - before, 0)


def _read_kills() -> Optional[int]:
    for folder, layout in _candidates():
        for line in _read(f"{folder}/{layout.events}").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
    return None


def _candidates() -> "Iterator[tuple[str, _Layout]]":
    """Yield the folders that may be this process's cgroup, the likeliest first."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            layout = _V1
        elif not controllers:
            layout = _V2
        else:
            continue
        # Most containers see their own cgroup as the root, whatever path the host knows it by.
        yield os.path.normpath(layout.root + path), layout
        yield layout.root, layout


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
