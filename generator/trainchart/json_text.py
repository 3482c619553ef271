"""JSON that others have written, such as a server's answer: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Return what a text of JSON says. Raises ValueError where it is none, or nested deeper than Python follows."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
