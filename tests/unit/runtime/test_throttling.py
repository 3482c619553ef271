"""What a launcher says about its container's CPU limit: read within bounds, and worded where it hurts."""

from __future__ import annotations

import pytest

from trainchart_runtime.throttling import Throttling, describe_throttling, dump_throttling, parse_throttling


def test_what_a_launcher_dumps_is_what_is_parsed():
    assert parse_throttling(dump_throttling(Throttling(0.97801, 0.02))) == Throttling(0.98, 0.02)


@pytest.mark.parametrize(
    "value",
    [
        None,
        0.9,
        [0.9, 0.02],
        {},
        {"share": 0.9},
        {"share": True, "limit": 0.02},
        {"share": "0.9", "limit": 0.02},
        {"share": 1.01, "limit": 0.02},
        {"share": -0.1, "limit": 0.02},
        {"share": 0.9, "limit": 0},
        {"share": 0.9, "limit": 1e6},
        {"share": 0.9, "limit": 10**400},
        {"share": float("nan"), "limit": 0.02},
    ],
)
def test_other_values_say_nothing(value):
    assert parse_throttling(value) is None


@pytest.mark.parametrize(("share", "limit"), [(0.98, 0.02), (0.52, 0.02), (1.0, 0.499)])
def test_programs_that_mostly_stand_still_are_described(share, limit):
    words = f"throttled for more than half of the last minute: its CPU limit is {1000 * limit:.0f}m"
    assert describe_throttling(Throttling(share, limit)) == words


@pytest.mark.parametrize(("share", "limit"), [(0.5, 0.02), (1.0, 0.5), (1.0, 0.9), (1.0, 2.0)])
def test_programs_that_are_only_slower_are_not(share, limit):
    """Any program that is busy enough is stopped in every period, and still has all of its limit."""
    assert describe_throttling(Throttling(share, limit)) == ""


def test_what_is_not_measured_is_not_described():
    assert describe_throttling(None) == ""
