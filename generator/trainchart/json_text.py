"""JSON that others have written, such as a server's answer: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes, *, are_keys_unique: bool = False) -> Any:
    """Return what a text of JSON says. Raises ValueError where it is none, or nested deeper than Python follows.

    With `are_keys_unique` also where an object has a key twice, of which readers take one or the other.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique if are_keys_unique else None)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it has the key {twice!r} twice in one object")
    return found
