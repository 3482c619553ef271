"""Decides which last lines of which pods are kept when a run is decided, as far as its record has room. Pure."""

from __future__ import annotations

import json
from typing import Dict, List, Mapping, Sequence

from trainchart_runtime.contract import LOG_LINES_KEPT
from trainchart_runtime.log_text import hide_credentials, is_warning

PODS_KEPT = 128
TOTAL_LIMIT = 320_000
"""Bytes of JSON of all pods' lines: the record beside them has up to RECORD_LIMIT, a ConfigMap a megabyte for both."""
POD_LIMIT = 40_000
"""Bytes of JSON of one pod's lines."""
LEFT_OUT = "…"
"""Stands where some of the last lines were left out."""
_LINE_LIMIT = 2000
"""Characters kept of one line."""
_ENTRY_BYTES = 60
"""Of a pod's time, and of the marks around its lines."""
_MARK_BYTES = len(json.dumps(LEFT_OUT)) + 2


def share_room(logs: Mapping[str, Sequence[str]], total: int = TOTAL_LIMIT) -> Dict[str, List[str]]:
    """Return what is kept of each pod's lines: all that the first may have, and the same room for each other.

    What a pod does not need is the others'.
    """
    names = list(logs)
    sizes = {name: _ENTRY_BYTES + len(json.dumps(name)) + sum(map(_size, logs[name])) for name in names}
    rooms: Dict[str, int] = {}
    for name in [*names[:1], *sorted(names[1:], key=lambda name: sizes[name])]:
        share = POD_LIMIT if not rooms else total // (len(names) - len(rooms))
        rooms[name] = min(sizes[name], share, POD_LIMIT)
        total -= rooms[name]
    return {name: keep_lines(logs[name], rooms[name] - _ENTRY_BYTES - len(json.dumps(name))) for name in names}


def keep_lines(lines: Sequence[str], limit: int = POD_LIMIT) -> List[str]:
    """Return the lines that fit into `limit` bytes of JSON: the last ones, warnings before them, then others."""
    hidden = map(hide_credentials, lines[-LOG_LINES_KEPT:])
    short = [line if len(line) <= _LINE_LIMIT else line[: _LINE_LIMIT - 1] + "…" for line in hidden]
    if sum(map(_size, short)) <= limit:
        return short
    short = [_shorten(line, limit // 2 - _MARK_BYTES) for line in short]
    newest_first = [index for index in range(len(short) - 1, -1, -1) if short[index] != LEFT_OUT]
    warnings = [index for index in newest_first if is_warning(short[index])]
    chosen: Dict[int, int] = {}
    for candidates, room in ((newest_first, limit // 2), (warnings, limit), (newest_first, limit)):
        left = room - sum(chosen.values())
        for index in candidates:
            size = _size(short[index]) + _MARK_BYTES
            if index not in chosen and size <= left:
                chosen[index] = size
                left -= size
            elif index not in chosen:
                break
    return _join(short, sorted(chosen))


def _join(lines: Sequence[str], chosen: Sequence[int]) -> List[str]:
    """Return the chosen lines, with a mark in each gap."""
    kept: List[str] = []
    for before, index in zip([-1, *chosen], chosen):
        kept += [LEFT_OUT] if index > before + 1 else []
        kept.append(lines[index])
    return kept


def _shorten(line: str, room: int) -> str:
    """Return the beginning of a line that needs at most `room` bytes."""
    while _size(line) > room and len(line) > 1:
        line = line[: max(1, len(line) * room // _size(line) - 1) - 1] + "…"
    return line


def _size(line: str) -> int:
    """Return the bytes of a line in JSON, which makes up to twelve of one character."""
    return len(json.dumps(line)) + 2
