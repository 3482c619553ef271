"""Which lines of a run's logs are wanted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogsFilter:
    """Which lines are wanted, of a local run or of a release."""

    role: str = ""
    pod: str = ""
    """Short (worker-1) or full name."""
    tail: int | None = None
    follow: bool = False
    since_failure: bool = False
    is_brief: bool = False
    """Read only the newest part of the logs, and only of some pods: for the console's page."""
