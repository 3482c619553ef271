"""How wide a text is on a terminal, and texts that are cut to a width. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

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


def cut_alike(texts: Sequence[str], width: int) -> list[str]:
    """Return texts that take at most `width` columns each, and still differ where what they begin with is the same.

    Images differ by the tag behind a long path, and runs by the number behind a long name.
    """
    lines = [clean(" ".join(text.split())) for text in texts]
    long = [line for line in lines if measure(line) > width]
    same = next(
        (at for at, chars in enumerate(zip(*long, strict=False)) if len(set(chars)) > 1), min(map(len, long), default=0)
    )
    begin = max(0, min([same - width // 3, *(len(line) - width + 1 for line in long)]) if len(set(long)) > 1 else 0)
    return [cut(f"…{line[begin:]}" if begin and line in long else line, width) for line in lines]


def measure(text: str) -> int:
    """Return how many columns of a terminal a text takes: some letters take two, and some marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
