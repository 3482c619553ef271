"""Reads the last lines of training pods from the API server before the pods go.

Not from the launchers: the container that decides a run has ended by then, and its launcher with it.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Sequence

from trainchart_controller.api import Api, ApiError
from trainchart_runtime.contract import LOG_LINES_KEPT, TRAINING_CONTAINER
from trainchart_runtime.kept_logs import PODS_KEPT, keep_lines, share_room
from trainchart_runtime.log_text import hide_credentials, is_lost_log, visible_line
from trainchart_runtime.run.observation import PodView

_SECONDS = 3.0
"""GPUs are held while the lines are read, so a node that is slow is left out."""
_POD_SECONDS = 1.0
"""For each pod but the first: the logs of a node that does not answer must not take the time of all others."""
_END_LIMIT = 400_000
"""Bytes kept of one container's last lines: a program can write anything, and the controller has little memory."""
_LINE_BYTES = 100_000
"""Bytes looked at of one line."""
_LINE = re.compile(rb"[^\r\n]*")
_READERS = 8
"""Logs that are read at once."""


def read_logs(connect: Callable[[], Api], namespace: str, pods: Sequence[PodView]) -> Dict[str, Mapping[str, Any]]:
    """Return pod name → {"at", "lines"} of the first of `pods`, the most important ones first.

    What cannot be read in time is left out. `connect` makes connections to the API server.
    """
    found: Dict[str, List[str]] = {}
    waiting: "queue.SimpleQueue[str]" = queue.SimpleQueue()
    names = [pod.name for pod in pods[:PODS_KEPT]]
    for name in names:
        waiting.put(name)
    until = time.monotonic() + _SECONDS

    def read() -> None:
        while time.monotonic() < until:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
            texts = _read_texts(connect, path, until if name == names[0] else time.monotonic() + _POD_SECONDS)
            if texts:
                found[name] = _parse_lines(texts)

    threads = [threading.Thread(target=read, daemon=True) for _ in names[:_READERS]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    seen = dict(found)
    kept = share_room({name: seen[name] for name in names if name in seen})
    return {name: {"at": round(time.time(), 3), "lines": lines} for name, lines in kept.items()}


def _read_texts(connect: Callable[[], Api], path: str, until: float) -> List[bytes]:
    """Return the ends of the logs of a pod's last two containers; none where neither can be read by `until`."""
    texts: List[bytes] = []
    # The container before a restart says how the run was decided; the one after it often has nothing to do. It may
    # take its place between the two questions.
    for is_previous in (False, True):
        seconds = until - time.monotonic()
        query = f"container={TRAINING_CONTAINER}&tailLines={LOG_LINES_KEPT}&previous={str(is_previous).lower()}"
        if seconds <= 0:
            break
        try:
            text = connect().read_end(f"{path}?{query}", seconds, _END_LIMIT)
        except ApiError:
            continue
        text = _drop_cut_words(text) if len(text) == _END_LIMIT else text
        if text not in texts and not is_lost_log(text.decode("utf-8", "replace")):
            texts.insert(0, text)
    return texts


def _parse_lines(texts: Sequence[bytes]) -> List[str]:
    # Only at line feeds: str.splitlines knows ten more marks, of which a program can write a million.
    return keep_lines(
        [
            visible_line(_cut(line).decode("utf-8", "replace"))
            for text in texts
            for line in text.rstrip(b"\n").split(b"\n")[-LOG_LINES_KEPT:]
            if text
        ]
    )


def _cut(line: bytes) -> bytes:
    """Return what says most of a long line: its beginning, or what has overwritten it, as progress bars do."""
    if len(line) <= _LINE_BYTES or b"\r" not in line:
        return line[:_LINE_BYTES]
    return _drop_cut_words(line[-_LINE_BYTES:])


def _drop_cut_words(end: bytes) -> bytes:
    """Return the end of a text without the first three words of its first line.

    They may be the rest of `Bearer TOKEN`, which is no longer recognized as one.
    """
    line = _LINE.match(end)[0]  # type: ignore[index]  # an empty line matches, too
    words = hide_credentials(line.decode("utf-8", "replace")).split(None, 3)
    return (words[3].encode() if len(words) > 3 else b"") + end[len(line) :]
