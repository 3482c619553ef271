"""Which colour a phase has; its name is always there, too. Pure."""

from __future__ import annotations

from trainchart.promotion.servers import NOT_READY, OFF, SERVING, STUCK
from trainchart.reports.report import NOT_RUNNING, TERMINATING, UNKNOWN
from trainchart_runtime.run.state import FAILED, FINISHING, RUNNING, STATE_LOST, STOPPED, SUCCEEDED, SUSPENDED

GOOD, ACTIVE, BAD, QUIET, WAITING = "good", "active", "bad", "quiet", "waiting"
_TONES = {
    SUCCEEDED: GOOD,
    RUNNING: ACTIVE,
    FINISHING: ACTIVE,
    FAILED: BAD,
    STATE_LOST: BAD,
    STOPPED: QUIET,
    SUSPENDED: QUIET,
    NOT_RUNNING: QUIET,
    TERMINATING: WAITING,
    UNKNOWN: WAITING,
    SERVING: GOOD,
    NOT_READY: BAD,
    STUCK: BAD,
    OFF: QUIET,
    "Finished": GOOD,
    "Gone": QUIET,
}


def tone_of(phase: str) -> str:
    """Return the tone of the phase of a run or a model server, or of the state of a pod."""
    return _TONES.get(phase, WAITING)
