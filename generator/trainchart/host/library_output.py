"""Keeps what a library in another language prints by itself from the terminal.

Helm's Go code writes warnings to file descriptor 2, over and over, with the texts of a chart as they are: a key may
hold escape sequences.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_STDERR = 2
_lock = threading.Lock()
_kept: list[int] = []
"""A copy of the descriptor while it leads nowhere, once for every call that goes on."""


def separate_stderr() -> None:
    """Let Python write errors through a descriptor of its own, whatever `silence_library` does meanwhile."""
    stream = sys.stderr
    if stream is sys.__stderr__ and stream is not None and stream.fileno() == _STDERR:
        stream.flush()
        # As Python's own, without a buffer: what a closed pipe did not take must not come up again at the end.
        raw = io.FileIO(os.dup(_STDERR), "w")
        sys.stderr = io.TextIOWrapper(
            raw,
            stream.encoding,
            stream.errors,
            line_buffering=True,
            write_through=True,
        )


@contextmanager
def silence_library() -> Iterator[None]:
    """Drop whatever is written to file descriptor 2 until all calls within this have ended."""
    with _lock, suppress(OSError):  # closed, as after `2>&-`
        kept = os.dup(_STDERR) if not _kept else _kept[-1]
        if not _kept:
            _lead_to(os.devnull)
        _kept.append(kept)
    try:
        yield
    finally:
        with _lock:
            kept = _kept.pop() if _kept else -1
            if kept != -1 and not _kept:
                os.dup2(kept, _STDERR)
                os.close(kept)


def _lead_to(path: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    os.dup2(handle, _STDERR)
    os.close(handle)
