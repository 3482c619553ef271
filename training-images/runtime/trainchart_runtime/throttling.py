"""How the kernel holds a container to its CPU limit, as its launcher measures it and its status page says it.

Pure: the launcher counts, the run controller reads its answers, and both say it in the same words.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional

from trainchart_runtime.progress import parse_number

_LONG = 0.5
"""Of the time: a program that stands still for less only trains more slowly, which its limit may be meant for."""
_CPU_LIMIT = 1e5


class Throttling(NamedTuple):
    """How the kernel has held a container to its CPU limit for a time."""

    share: float
    """Of the kernel's periods in which it was stopped, since it had used up its CPU time; from 0 to 1."""
    limit: float
    """CPUs."""

    @property
    def stopped(self) -> float:
        """The least share of the time in which a busy program stands still: that of one thread; others add to it."""
        return self.share * max(1.0 - self.limit, 0.0)


def dump_throttling(throttling: Throttling) -> Mapping[str, float]:
    """Return a part of a launcher's status."""
    return {"share": round(throttling.share, 2), "limit": round(throttling.limit, 3)}


def parse_throttling(value: Any) -> Optional[Throttling]:
    """Read a part of a launcher's status; None for anything else, and for numbers that cannot be."""
    if not isinstance(value, dict):
        return None
    share, limit = parse_number(value.get("share")), parse_number(value.get("limit"))
    if share is None or limit is None or not 0 <= share <= 1 or not 0 < limit <= _CPU_LIMIT:
        return None
    return Throttling(share, limit)


def describe_throttling(throttling: Optional[Throttling]) -> str:
    """Return that a container can hardly run; "" for one that can.

    The words do not change while it lasts, since each change would be written into the record of the run.
    """
    if throttling is None or throttling.stopped <= _LONG:
        return ""
    return f"throttled for more than half of the last minute: its CPU limit is {1000 * throttling.limit:.0f}m"
