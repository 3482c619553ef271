"""A signal that a wrapper doubles is one request to stop."""

from __future__ import annotations

from trainchart.stop_signals import StopRequests


def test_only_a_signal_of_a_second_later_asks_again() -> None:
    requests = StopRequests()
    assert [requests.is_new(now) for now in (10.0, 10.0, 10.9, 12.0, 12.5)] == [True, False, False, True, False]
