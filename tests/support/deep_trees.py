"""Trees that are deeper than Python's recursion."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_FRAMES = 150


@contextlib.contextmanager
def deep_tree(folder: Path, depth: int = 250, name: str = "d") -> Iterator[None]:
    """Fill a folder with folders in each other, and a file in each; Python's recursion is limited to fewer.

    No test leaves such a tree, for pytest removes its folders by recursion.
    """
    folder.mkdir(parents=True, exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_count_frames() + _FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        subprocess.run(["rm", "-rf", folder], check=True)


def _count_frames() -> int:
    frame, count = sys._getframe(), 1
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count
