"""The order of names in lists."""

from __future__ import annotations

import re


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return what sorts names as people count: exp-2 before exp-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
