"""Whether, and after how long, a launcher starts its program again.

Pure rules over counters; the launcher keeps them in the pod's state folder, so that a restarted container
goes on counting.
"""

from __future__ import annotations

from typing import NamedTuple

from trainchart_runtime.cause import RESTART_IN_PLACE, RESTART_IN_PLACE_PEER, Cause

PEER_RESTARTS_LIMIT = 100
"""So many restarts because of peers, without STEADY_SECONDS of work in between, and the launcher gives up."""
STEADY_SECONDS = 300.0
"""A program that ran this long was fine: waits and peer restarts are counted from zero again."""
SAME_FAILURES_LIMIT = 2
"""A program that failed so often with the same error, at the same step, fails so again."""
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 30.0


class Attempts(NamedTuple):
    """What happened so far to the program of one pod."""

    started: int = 0
    ended: int = 0
    """Ends of the program that a launcher saw and that were no success."""
    own_failures: int = 0
    """Over the pod's whole life: compared with the restart budget."""
    peer_failures: int = 0
    """Over the pod's whole life, for reports."""
    peer_failures_in_a_row: int = 0
    failures_in_a_row: int = 0
    """Failures of any kind without STEADY_SECONDS of work in between: decides the wait."""
    last_failure: str = ""
    """The program's last own failure, as classify.identify_failure names it."""
    same_failures_in_a_row: int = 0


def count_failure(attempts: Attempts, cause: Cause, ran_seconds: float, failure: str = "") -> Attempts:
    """Return `attempts` with one more failure of a program that ran for `ran_seconds`.

    `failure` is what classify.identify_failure says of it. Peers that are lost between two failures do not count.
    """
    if ran_seconds >= STEADY_SECONDS:
        attempts = attempts._replace(peer_failures_in_a_row=0, failures_in_a_row=0)
    attempts = attempts._replace(failures_in_a_row=attempts.failures_in_a_row + 1)
    if cause.restart == RESTART_IN_PLACE_PEER:
        return attempts._replace(
            peer_failures=attempts.peer_failures + 1,
            peer_failures_in_a_row=attempts.peer_failures_in_a_row + 1,
        )
    is_same = bool(failure) and failure == attempts.last_failure
    return attempts._replace(
        own_failures=attempts.own_failures + 1,
        last_failure=failure,
        same_failures_in_a_row=attempts.same_failures_in_a_row + 1 if is_same else 1,
    )


def resolve_wait(attempts: Attempts) -> float:
    """Return the seconds to wait before the next start."""
    doublings = min(attempts.failures_in_a_row - 1, 20)
    return min(FIRST_WAIT_SECONDS * 2.0**doublings, LONGEST_WAIT_SECONDS)


def explain_giving_up(attempts: Attempts, cause: Cause, max_restarts: int) -> str:
    """Return why the program, whose failure is counted already, is not started again; "" where it is."""
    if cause.restart == RESTART_IN_PLACE:
        failures, same = attempts.own_failures, attempts.same_failures_in_a_row
        if same >= SAME_FAILURES_LIMIT and failures <= max_restarts:
            return f"the same error occurred {same} times in a row, at the same step"
        return "" if failures <= max_restarts else f"failures: {failures}, restarts allowed: {max_restarts}"
    if cause.restart == RESTART_IN_PLACE_PEER:
        losses = attempts.peer_failures_in_a_row
        return "" if losses <= PEER_RESTARTS_LIMIT else f"its peers were lost {losses} times in a row"
    return "a restart would not help"
