"""How wide a text is on a terminal, and texts that are cut to a width. Pure."""

from __future__ import annotations

import unicodedata

from trainchart_runtime.log_text import clean


def cut(text: str, width: int) -> str:
    """Return a text in one line that takes at most `width` columns."""
    text = clean(" ".join(text.split()))
    if measure(text) <= width:
        return text
    kept = ""
    for char in text:
        if measure(kept + char) > width - 1:
            break
        kept += char
    return f"{kept}…"


def measure(text: str) -> int:
    """Return how many columns of a terminal a text takes: some letters take two, and some marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
