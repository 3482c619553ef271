"""A curve in characters: it fits its terminal, whatever the numbers are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.reports.curve_text import draw_curve

Points = list[tuple[int, float]]
FALLING = [(step, 2.0 - step / 50) for step in range(0, 101, 5)]


def draw(points: Points, width: int = 80, last_step: int | None = None, *, is_plain: bool = False) -> list[str]:
    steps, values = [step for step, _ in points], [value for _, value in points]
    return draw_curve("loss", steps, values, last_step, width, is_plain=is_plain)


def test_falling_loss_is_drawn_from_high_to_low() -> None:
    lines = draw(FALLING)
    assert len(lines) == 9
    assert lines[0] == "loss by step"
    assert lines[1].startswith(" 2 ┤─") and lines[1].endswith("╮")
    assert lines[7].startswith(" 0 ┤ ") and lines[7].endswith("─")
    assert lines[8].split() == ["0", "100"]


def test_plain_terminal_gets_ascii() -> None:
    text = "\n".join(draw(FALLING, is_plain=True))
    assert text.isascii()
    assert text.count("*") > 50


@pytest.mark.parametrize("width", [0, 5, 12, 13, 20, 40, 80, 500])
@pytest.mark.parametrize("is_plain", [True, False])
def test_curve_fits_its_terminal_or_is_left_out(width: int, is_plain: bool) -> None:
    lines = draw(FALLING, width, is_plain=is_plain)
    assert all(len(line) <= min(width, 90) for line in lines)
    assert bool(lines) is (width >= 13)


def test_nothing_is_drawn_without_two_points() -> None:
    assert draw([]) == draw([(1, 0.5)]) == draw([(1, 0.5)], last_step=9) == []


def test_constant_loss_is_one_row() -> None:
    lines = draw([(1, 0.5), (9, 0.5)])
    assert len(lines) == 3
    assert lines[1].startswith(" 0.5 ┤────")


def test_diverged_loss_ends_where_its_numbers_do() -> None:
    lines = draw([(0, 0.5), (50, 0.75)], last_step=100)
    assert lines[-1] == " no finite loss was reported after step 50"
    assert lines[-2].split() == ["0", "100"]
    assert max(len(line) for line in lines[1:-2]) < 50
    assert len(lines) == 10
    assert draw([(0, 0.5), (50, 0.75)], last_step=50) == draw([(0, 0.5), (50, 0.75)], last_step=None)


@pytest.mark.parametrize(
    "values", [[1.7e308, -1.7e308, 0.0], [5e-324, 0.0], [1.7e308] * 3, [-1e-300, 1e300], [1, 10**300]]
)
def test_extreme_numbers_are_drawn(values: list[float]) -> None:
    assert 3 <= len(draw(list(enumerate(values)))) <= 10


@given(
    st.dictionaries(st.integers(0, 1000) | st.integers(0, 2**62), st.floats(allow_nan=False, allow_infinity=False)),
    st.none() | st.integers(0, 2**62),
    st.integers(0, 200),
    st.booleans(),
)
def test_any_curve_is_ten_lines_that_fit(
    points: dict[int, float], last_step: int | None, width: int, is_plain: bool
) -> None:
    lines = draw(sorted(points.items()), width, last_step, is_plain=is_plain)
    assert len(lines) <= 10
    assert all(len(line) <= width for line in lines if "no finite" not in line)
