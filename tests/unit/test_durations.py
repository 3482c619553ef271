"""Durations as users write them."""

from __future__ import annotations

import pytest

from trainchart.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), (90, 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("2h5s", 7205), ("1h1m1s", 3661), ("0", 0)],
)
def test_a_duration_is_read(text: str | int, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2d", "1.5h", "-1", -1, "30m1h", "1e3", "5 minutes", "1m\n", "\u0661m"])
def test_what_is_not_a_duration_is_refused(text: str | int) -> None:
    with pytest.raises(ValueError, match="is not a duration such as 30m, 1h30m, 45s or seconds"):
        parse_duration(text)
