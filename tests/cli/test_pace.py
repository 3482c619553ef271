"""How long a training still takes."""

from __future__ import annotations

from trainchart.cli.run_table import Pace


def seen(*reports: tuple[float, int | None]) -> Pace:
    pace = Pace()
    for seconds, step in reports:
        pace.note(seconds, step)
    return pace


def test_the_rest_takes_as_long_as_the_steps_before() -> None:
    assert seen((20, None), (21, 100), (31, 200)).seconds_left(1000) == 80


def test_one_report_says_nothing() -> None:
    assert seen((20, None), (21, 100), (31, 100)).seconds_left(1000) is None


def test_a_training_that_stands_still_takes_longer() -> None:
    assert seen((20, 100), (30, 200), (40, 200)).seconds_left(1000) == 160


def test_a_restart_from_a_checkpoint_starts_the_estimate_over() -> None:
    assert seen((20, 100), (30, 900), (31, 500)).seconds_left(1000) is None
    assert seen((20, 100), (30, 900), (31, 500), (32, 600)).seconds_left(1000) == 4


def test_only_the_last_minutes_count() -> None:
    assert seen((0, 1), (1000, 2), (1001, 102), (1002, 202)).seconds_left(302) == 1


def test_nothing_is_left_beyond_the_last_step() -> None:
    assert seen((0, 1), (1, 20)).seconds_left(10) == 0
