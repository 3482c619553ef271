"""Restart budgets and waits."""

from __future__ import annotations

import pytest

from trainchart_runtime import causes
from trainchart_runtime.restart import (
    LONGEST_WAIT_SECONDS,
    PEER_RESTARTS_LIMIT,
    STEADY_SECONDS,
    Attempts,
    count_failure,
    explain_giving_up,
    resolve_wait,
)


def fail(cause, times, attempts=None, ran_seconds=1.0):
    attempts = attempts or Attempts()
    for _ in range(times):
        attempts = count_failure(attempts, cause, ran_seconds)
    return attempts


@pytest.mark.parametrize(("failures", "expected"), [(1, 0.2), (2, 0.4), (3, 0.8), (8, 25.6), (9, 30.0), (5000, 30.0)])
def test_waits_double_up_to_a_limit(failures, expected):
    assert resolve_wait(Attempts(failures_in_a_row=failures)) == pytest.approx(expected)
    assert expected <= LONGEST_WAIT_SECONDS


def test_own_faults_are_bounded_over_the_pods_life():
    steady = fail(causes.PROGRAM_ERROR, 3, ran_seconds=STEADY_SECONDS)
    assert explain_giving_up(steady, causes.PROGRAM_ERROR, 3) == ""
    assert "failures: 4, restarts allowed: 3" in explain_giving_up(fail(causes.KILLED, 1, steady), causes.KILLED, 3)


def test_lost_peers_do_not_use_up_the_own_budget():
    attempts = fail(causes.PEER_LOST, 50)
    assert (attempts.own_failures, attempts.peer_failures) == (0, 50)
    assert explain_giving_up(fail(causes.CRASHED, 1, attempts), causes.CRASHED, 1) == ""


def test_lost_peers_are_bounded_in_a_row_only():
    attempts = fail(causes.PEER_LOST, PEER_RESTARTS_LIMIT)
    assert explain_giving_up(attempts, causes.PEER_LOST, 0) == ""
    assert "in a row" in explain_giving_up(fail(causes.PEER_LOST, 1, attempts), causes.PEER_LOST, 0)
    steady = fail(causes.PEER_LOST, 1, attempts, ran_seconds=STEADY_SECONDS)
    assert explain_giving_up(steady, causes.PEER_LOST, 0) == ""
    assert resolve_wait(steady) == pytest.approx(0.2)


@pytest.mark.parametrize("cause", [c for c in causes.CAUSES.values() if c.restart == "never"], ids=lambda c: c.name)
def test_some_causes_are_never_restarted(cause):
    assert explain_giving_up(Attempts(), cause, 100) == "a restart would not help"


def test_same_error_twice_in_a_row_is_final():
    once = count_failure(Attempts(), causes.PROGRAM_ERROR, 1.0, "KeyError: 'x'")
    assert explain_giving_up(once, causes.PROGRAM_ERROR, 3) == ""
    twice = count_failure(once, causes.PROGRAM_ERROR, 1.0, "KeyError: 'x'")
    assert explain_giving_up(twice, causes.PROGRAM_ERROR, 3) == (
        "the same error occurred 2 times in a row, at the same step"
    )
    # A lost peer is not the program's error, and says nothing about it.
    between = count_failure(once, causes.PEER_LOST, 1.0)
    assert explain_giving_up(between, causes.PEER_LOST, 3) == ""
    assert explain_giving_up(
        count_failure(between, causes.PROGRAM_ERROR, 1.0, "KeyError: 'x'"), causes.PROGRAM_ERROR, 3
    )


@pytest.mark.parametrize(("first", "second"), [("KeyError: 'x'", "KeyError: 'y'"), ("KeyError: 'x'", ""), ("", "")])
def test_other_errors_are_started_again(first, second):
    attempts = count_failure(Attempts(), causes.PROGRAM_ERROR, 1.0, first)
    attempts = count_failure(attempts, causes.PROGRAM_ERROR, 1.0, second)
    assert explain_giving_up(attempts, causes.PROGRAM_ERROR, 3) == ""
