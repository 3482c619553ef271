"""When a run began and how long it took, as far as its report says. Pure."""

from __future__ import annotations

from trainchart.reports.report import LOCAL, Report
from trainchart_runtime.run.state import HISTORY_KEPT

_LATEST = 1e11
"""Unix seconds in some thousand years."""


def find_start(report: Report) -> float:
    """Return the Unix time at which the run began, of a resumed local run the last start; 0 where it is not known."""
    if report.origin == LOCAL:
        return _read_time(report.record.get("startedAt"))
    # Of a history that is full, the oldest entries are gone.
    return _read_time(report.history[0].at if 0 < len(report.history) < HISTORY_KEPT else 0.0)


def find_seconds(report: Report) -> float | None:
    """Return how long the run took, or has been going on; None where it is not known."""
    began = find_start(report)
    ended = report.outcome.at if report.outcome is not None else report.since if report.is_over else report.now
    ended = _read_time(ended)
    return max(0.0, ended - began) if began and ended else None


def _read_time(at: object) -> float:
    """Return a recorded time; 0 where it makes no sense, since people can write anything into a record."""
    return float(at) if isinstance(at, (int, float)) and 0 < at < _LATEST else 0.0
