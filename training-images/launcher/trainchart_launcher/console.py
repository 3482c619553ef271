"""Lines that the launcher writes into the pod's log, next to the program's own output."""

from __future__ import annotations

import os
from typing import Callable, List

PREFIX = "trainchart-launcher: "
_copies: List[Callable[[bytes], None]] = []


def copy_lines(receive: Callable[[bytes], None]) -> None:
    """Give `receive` every line from now on as well."""
    _copies.append(receive)


def print_line(text: str) -> None:
    """Write one line to stderr in one piece; a log that is gone is no reason to fail."""
    line = (PREFIX + text.replace("\n", " ") + "\n").encode("utf-8", "replace")
    for receive in _copies:
        receive(line)
    try:
        os.write(2, line)
    except OSError:
        pass
