"""Packed charts within a chart, as `helm dependency build` leaves them in charts/. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainchart.archive.read import parse_archive
from trainchart.errors import ToolError

_PACKED = re.compile(r"charts/[^/._][^/]*\.tgz")
_NESTED_LIMIT = 3
"""Charts within each other that are unpacked; others stay as they are."""
_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that are unpacked of the charts in one folder; those beyond stay packed."""


def open_packed(files: Mapping[str, bytes], *, mark: str = "", depth: int = _NESTED_LIMIT) -> dict[str, bytes]:
    """Return the files of a chart (path → content) with packed subcharts as folders, as far as they can be read.

    The folder has the archive's name without .tgz, and `mark` behind it.
    """
    opened: dict[str, bytes] = {}
    size = 0
    for path, content in files.items():
        try:
            inner = parse_archive(content).files if depth and _PACKED.fullmatch(path) else {}
        except ToolError:
            inner = {}
        size += sum(map(len, inner.values()))
        inner = inner if size <= _SIZE_LIMIT else {}
        folder = path.removesuffix(".tgz") + mark
        below = open_packed(inner, mark=mark, depth=depth - 1) if inner else {}
        opened |= {f"{folder}/{name}": each for name, each in below.items()} or {path: content}
    return opened
