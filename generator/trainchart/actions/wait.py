"""The use case `trainchart wait`: look again until a run is over, through an API server that is away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainchart.actions.status import Look
from trainchart.errors import ClusterError, Forbidden, NotFound, NotInTime, Unauthorized, Unreachable
from trainchart.reports.report import LOCAL, UNKNOWN, Report
from trainchart.reports.text import describe_seconds, headline

POLL_SECONDS = 4.0
LOCAL_POLL_SECONDS = 0.5
PODS_PER_SECOND = 100
"""A release with a thousand pods is megabytes to list: it is asked for less often."""
PATIENCE_SECONDS = 600.0
"""So long an API server may be away, once it has answered: a restart or an upgrade takes minutes."""
REFUSAL_PATIENCE_SECONDS = 60.0
"""An API server that has just started refuses all clients for a moment."""
SAY_AGAIN_SECONDS = 60.0


def wait_for_end(look: Look, timeout_seconds: float | None, tell: Callable[[str], None]) -> Report:
    """Return the report of the run once it is over; `tell` gets a line for every change, and one a minute.

    Raises:
        NotInTime: the run is not over in time.
        ClusterError: the release does not exist (any more), or the cluster cannot be read.
    """
    start = time.monotonic()
    teller = _Teller(tell)
    report: Report | None = None
    silent_since = start
    while True:
        try:
            report = look()
            silent_since = time.monotonic()
        except ClusterError as error:
            if report is None:
                raise
            if isinstance(error, NotFound):
                raise NotFound(f"{report.key.release} no longer exists: {error.message}", hint=error.hint) from error
            if time.monotonic() - silent_since > _patience(error):
                raise
            tell(f"no response for {describe_seconds(time.monotonic() - silent_since)}, trying again: {error.message}")
        else:
            if report.is_over:
                return report
            if report.phase == UNKNOWN:
                kind = Forbidden if report.unknown else ClusterError
                raise kind(f"cannot wait for {report.key.release}: {'; '.join((*report.remarks, *report.unknown))}")
            teller.tell_about(report)
        if timeout_seconds is not None and time.monotonic() - start >= timeout_seconds:
            raise NotInTime(
                f"not over within {describe_seconds(timeout_seconds)}: {headline(report)}",
                hint=f"the run continues; see: trainchart status {report.address}",
            )
        pause = (
            LOCAL_POLL_SECONDS if report.origin == LOCAL else POLL_SECONDS + len(report.pods or ()) / PODS_PER_SECOND
        )
        if timeout_seconds is not None:
            pause = min(pause, max(0.0, start + timeout_seconds - time.monotonic()))
        time.sleep(pause)


def _patience(error: ClusterError) -> float:
    if isinstance(error, Unreachable):
        return PATIENCE_SECONDS
    return REFUSAL_PATIENCE_SECONDS if isinstance(error, (Forbidden, Unauthorized)) else 0.0


class _Teller:
    """Says what is new: a changed phase, attempt or problem; or that it still goes on."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._last: object = None
        self._next = 0.0

    def tell_about(self, report: Report) -> None:
        problems = tuple((problem.subject, problem.cause, problem.message) for problem in report.problems)
        news = (report.phase, report.attempt, problems, report.remarks)
        if news == self._last and time.monotonic() < self._next:
            return
        self._last, self._next = news, time.monotonic() + SAY_AGAIN_SECONDS
        step = f", step {report.progress.step}" if report.progress.step is not None else ""
        self._tell(headline(report) + step)
        for problem in report.problems[:3]:
            self._tell(f"  {problem.subject}: {problem.cause}: {problem.message}")
        for remark in report.remarks:
            self._tell(f"  note: {remark}")
