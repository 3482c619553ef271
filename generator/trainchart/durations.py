"""Durations as users write them: in specs, values and options. Pure; the chart reads them in _values.tpl."""

from __future__ import annotations

import re

DURATION_PATTERN = r"^([0-9]{1,6}h([0-9]{1,6}m)?([0-9]{1,6}s)?|[0-9]{1,6}m([0-9]{1,6}s)?|[0-9]{1,9}s?)$"
DURATION_EXAMPLES = "30m, 1h30m, 45s or seconds"
_UNITS = {"h": 3600, "m": 60, "s": 1, "": 1}


def parse_duration(value: str | int) -> int:
    """Return a duration in seconds.

    Raises:
        ValueError: says what durations look like.
    """
    if not re.fullmatch(DURATION_PATTERN, str(value)):
        raise ValueError(f"{value!r} is not a duration such as {DURATION_EXAMPLES}")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([hms]?)", str(value)))
