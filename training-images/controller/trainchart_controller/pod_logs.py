"""Reads the last lines of training pods from the API server before the pods go.

Not from the launchers: the container that decides a run has ended by then, and its launcher with it.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Sequence

from trainchart_controller.api import Api, ApiError
from trainchart_runtime.contract import LOG_LINES_KEPT, TRAINING_CONTAINER
from trainchart_runtime.log_text import visible_line
from trainchart_runtime.run.observation import PodView

_SECONDS = 3.0
"""GPUs are held while the lines are read, so a node that is slow is left out."""
_END_LIMIT = 400_000
"""Bytes kept of one container's last lines: a program can write anything, and the controller has little memory."""
_LINE_LIMIT = 2000
"""Characters kept of one line."""
_LINE_BYTES = 100_000
"""Bytes looked at of one line."""
_LOG_LIMIT = 40_000
"""Bytes of JSON kept of one pod's lines: a record of many roles must stay below a ConfigMap's megabyte."""
_PODS_KEPT = 8


def read_logs(connect: Callable[[], Api], namespace: str, pods: Sequence[PodView]) -> Dict[str, Mapping[str, Any]]:
    """Return pod name → {"at", "lines"} of the first of `pods`; what cannot be read in time is left out.

    `connect` makes connections to the API server.
    """
    found: Dict[str, Mapping[str, Any]] = {}

    def read(pod: PodView) -> None:
        texts: List[bytes] = []
        # The container before a restart says how the run was decided; the one after it often has nothing to do. It may
        # take its place between the two questions.
        for is_previous in (False, True):
            query = f"container={TRAINING_CONTAINER}&tailLines={LOG_LINES_KEPT}&previous={str(is_previous).lower()}"
            path = f"/api/v1/namespaces/{namespace}/pods/{pod.name}/log?{query}"
            try:
                text = connect().read_end(path, _SECONDS, _END_LIMIT)
            except ApiError:
                continue
            if text not in texts:
                texts.insert(0, text)
        # Only at line feeds: str.splitlines knows ten more marks, of which a program can write a million.
        lines = [
            visible_line(_cut(line).decode("utf-8", "replace"))
            for text in texts
            for line in text.rstrip(b"\n").split(b"\n")[-LOG_LINES_KEPT:]
            if text
        ]
        if lines:
            found[pod.name] = {"at": round(time.time(), 3), "lines": _keep_last(lines)}

    threads = [threading.Thread(target=read, args=(pod,), daemon=True) for pod in pods[:_PODS_KEPT]]
    until = time.monotonic() + _SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def _cut(line: bytes) -> bytes:
    """Return what says most of a long line: its beginning, or what has overwritten it, as progress bars do."""
    return line[-_LINE_BYTES:] if b"\r" in line else line[:_LINE_BYTES]


def _keep_last(lines: Sequence[str]) -> List[str]:
    """Return the last lines, as many as fit; JSON makes up to twelve bytes of one character."""
    kept: List[str] = []
    room = _LOG_LIMIT
    for line in reversed(lines[-LOG_LINES_KEPT:]):
        line = line if len(line) <= _LINE_LIMIT else line[: _LINE_LIMIT - 1] + "…"
        room -= len(json.dumps([line]))
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
