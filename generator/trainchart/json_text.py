"""JSON that others have written, such as a server's answer: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes, *, are_keys_unique: bool = False, keep_numbers: bool = False) -> Any:
    """Return what a text of JSON says, with `keep_numbers` its numbers as they are written.

    Raises ValueError where it is none, or nested deeper than Python follows; with `are_keys_unique` also where an
    object has a key twice, of which readers take one or the other.
    """
    numbers = str if keep_numbers else None
    try:
        pairs = _unique if are_keys_unique else None
        return json.loads(text, object_pairs_hook=pairs, parse_int=numbers, parse_float=numbers)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it has the key {twice!r} twice in one object")
    return found
