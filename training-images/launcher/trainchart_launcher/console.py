"""Lines that the launcher writes into the pod's log, next to the program's own output."""

from __future__ import annotations

import os
from typing import Callable, List, Set

from trainchart_runtime.contract import LAUNCHER_PREFIX

_STDOUT, _STDERR = 1, 2
_begun: Set[int] = set()
"""The outputs on which the program's last line has no end yet."""
_copies: List[Callable[[bytes], None]] = []


def copy_lines(receive: Callable[[bytes], None]) -> None:
    """Give `receive` every line from now on as well."""
    _copies.append(receive)


def note_output(target: int, chunk: bytes) -> None:
    """Remember whether what was passed on to `target` ends a line."""
    if chunk.endswith(b"\n"):
        _begun.discard(target)
    else:
        _begun.add(target)


def begin_lines() -> None:
    """End the last line of a program, so that what the next one writes does not begin in the middle of it."""
    for target in (_STDOUT, _STDERR):
        if target in _begun:
            _write(target, b"\n")
    _begun.clear()


def print_line(text: str) -> None:
    """Write one line to stderr in one piece; a log that is gone is no reason to fail."""
    line = (LAUNCHER_PREFIX + text.replace("\n", " ") + "\n").encode("utf-8", "replace")
    for receive in _copies:
        receive(line)
    if _STDERR in _begun:
        _begun.discard(_STDERR)
        line = b"\n" + line
    _write(_STDERR, line)


def _write(target: int, content: bytes) -> None:
    try:
        os.write(target, content)
    except OSError:
        pass
