"""How many steps are done at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainchart_training.strategies.replicas import Pace


@given(st.floats(0.0001, 20))
def test_calls_come_to_half_a_second_or_one_step(step_seconds: float) -> None:
    pace, spent = Pace(0), []
    for _ in range(20):
        spent.append(pace.steps * step_seconds)
        pace.learn(pace.steps, spent[-1])
    assert all(seconds <= max(0.5, step_seconds) * 1.0001 for seconds in spent)
    assert pace.steps == 1 or spent[-1] > 0.5 - 2 * step_seconds


def test_a_slow_call_is_followed_by_a_shorter_one() -> None:
    pace = Pace(0)
    for _ in range(9):
        pace.learn(pace.steps, pace.steps * 0.001)
    assert pace.steps == 499 or pace.steps == 500
    pace.learn(pace.steps, 5.0)
    assert pace.steps <= 50


@given(st.integers(1, 1000), st.floats(0, 100))
def test_a_number_that_is_given_stays(steps: int, seconds: float) -> None:
    pace = Pace(steps)
    pace.learn(steps, seconds)
    assert pace.steps == steps
