"""Lines that the launcher writes into the pod's log, next to the program's own output."""

from __future__ import annotations

import os

PREFIX = "trainchart-launcher: "


def print_line(text: str) -> None:
    """Write one line to stderr in one piece; a log that is gone is no reason to fail."""
    line = PREFIX + text.replace("\n", " ") + "\n"
    try:
        os.write(2, line.encode("utf-8", "replace"))
    except OSError:
        pass
