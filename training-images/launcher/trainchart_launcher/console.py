"""Lines that the launcher writes into the pod's log, next to the program's own output."""

from __future__ import annotations

import os
from typing import Callable, List

PREFIX = "trainchart-launcher: "
_STDERR = 2
_begun = [False]
"""Whether the program's last line on stderr has no end yet."""
_copies: List[Callable[[bytes], None]] = []


def copy_lines(receive: Callable[[bytes], None]) -> None:
    """Give `receive` every line from now on as well."""
    _copies.append(receive)


def note_output(target: int, chunk: bytes) -> None:
    """Remember whether what was passed on to `target` ends a line."""
    if target == _STDERR:
        _begun[0] = not chunk.endswith(b"\n")


def print_line(text: str) -> None:
    """Write one line to stderr in one piece; a log that is gone is no reason to fail."""
    line = (PREFIX + text.replace("\n", " ") + "\n").encode("utf-8", "replace")
    for receive in _copies:
        receive(line)
    if _begun[0]:
        _begun[0] = False
        line = b"\n" + line
    try:
        os.write(_STDERR, line)
    except OSError:
        pass
