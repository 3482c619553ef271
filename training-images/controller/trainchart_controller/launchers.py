"""What the launchers in the training pods say over HTTP: what their programs do, and how they have ended.

Not the API server's business: a pod that does not answer is no trouble, and nothing waits long for it. Whatever runs in
the pod may write the answers, so each is bounded in time, size and depth.
"""

from __future__ import annotations

import http.client
import io
import json
import queue
import re
import socket
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from trainchart_runtime.run.observation import LauncherReport, parse_report

POLL_SECONDS = 10.0
_FIRST_STEP_SECONDS = 2.0
"""Until the leading task has told a step: the first one says from where it went on."""
_PAUSE_SECONDS = 0.05
"""Between two pods: a thousand of them are no steady load."""
_THREADS = 4
_LEADER = 0
"""The thread that asks the leading task's launcher alone, which must not wait for others."""
_ANSWER_SECONDS = 2.0
_STATUS_LIMIT = 200_000
"""Bytes: a launcher's longest answer, with the metrics that a program may report."""
_ANSWER_LIMIT = 256 * 1024
"""Bytes of an answer with its headers: http.client alone takes a hundred of 64 KiB each."""


class Target(NamedTuple):
    """One launcher to ask."""

    uid: str
    """Of its pod."""
    ip: str
    """Not its name: names may not resolve when it matters most."""


class LauncherAnswer(NamedTuple):
    """What a launcher has said that it had not said before."""

    uid: str
    report: LauncherReport


class LauncherPoll:
    """Asks the launchers for their state, without end, and hands over what is new in a queue."""

    def __init__(self, port: int, observations: "queue.Queue[Any]") -> None:
        self._port = port
        self._observations = observations
        self._targets: List[Sequence[Target]] = [()] * _THREADS
        """For each thread."""

    def start(self) -> None:
        for number in range(_THREADS):
            threading.Thread(target=self._run, args=(number,), name=f"launcher-poll-{number}", daemon=True).start()

    def look_at(self, leader: Optional[Target], others: Sequence[Target]) -> None:
        """Ask these launchers from now on."""
        shares = [others[number :: _THREADS - 1] for number in range(_THREADS - 1)]
        self._targets = [(leader,) if leader else (), *shares]

    def _run(self, number: int) -> None:
        known: Dict[str, LauncherReport] = {}
        while True:
            targets = self._targets[number]
            known = {target.uid: known[target.uid] for target in targets if target.uid in known}
            is_early = number == _LEADER and not any(report.step is not None for report in known.values())
            until = time.monotonic() + (min(_FIRST_STEP_SECONDS, POLL_SECONDS) if is_early else POLL_SECONDS)
            for target in targets:
                body = _fetch(target, self._port, "/status")
                report = parse_report(_parse(body)) if body else None
                if report is not None and number != _LEADER:
                    report = report._replace(metrics={})  # Not used, and a thousand pods may report many.
                if report is not None and report != known.get(target.uid):
                    self._observations.put(LauncherAnswer(target.uid, report))
                    known[target.uid] = report
                if len(targets) > 1:
                    time.sleep(_PAUSE_SECONDS)
            time.sleep(max(until - time.monotonic(), _PAUSE_SECONDS))


_HEAD_LIMIT = 8192
"""Bytes of the headers: those of launchers have some hundreds, and Python needs half a minute for some of 240 KB."""
_GOOD = (b"HTTP/1.0 200 ", b"HTTP/1.1 200 ")
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class _ShortStream(io.RawIOBase):
    """The first _ANSWER_LIMIT bytes that come over a socket; _HEAD_LIMIT where the headers have not ended by then, or
    are not those of an answer with status 200."""

    def __init__(self, connected: socket.socket) -> None:
        self._whole = connected.makefile("rb", buffering=0)
        self._left = _HEAD_LIMIT
        self._head: Optional[bytes] = b""
        """What has come of the headers; None once they have ended."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        number = self._whole.readinto(memoryview(buffer)[: self._left])
        self._left -= number or 0
        if self._head is not None and number:
            self._head += bytes(memoryview(buffer)[:number])
            if _HEAD_END.search(self._head):
                # After a status such as 100, http.client reads further headers.
                self._left += _ANSWER_LIMIT - _HEAD_LIMIT if self._head.startswith(_GOOD) else -self._left
                self._head = None
        return number

    def close(self) -> None:
        # Else the socket stays open.
        self._whole.close()
        super().close()


class _ShortResponse(http.client.HTTPResponse):
    """A response that ends after _ANSWER_LIMIT bytes, its headers included."""

    def __init__(self, sock: socket.socket, **options: Any) -> None:
        super().__init__(sock, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_ShortStream(sock))


def _fetch(target: Target, port: int, path: str) -> bytes:
    """Return the body of an answer, cut at a limit; nothing where it is not there in time."""
    connection = http.client.HTTPConnection(target.ip, port, timeout=_ANSWER_SECONDS)
    connection.response_class = _ShortResponse
    # The time-out of a socket is for each read of it: an answer that comes byte by byte would take hours.
    alarm = None
    try:
        connection.connect()
        # Of the socket itself: the connection forgets it where the answer ends with the connection.
        alarm = threading.Timer(_ANSWER_SECONDS, _end, [connection.sock])
        alarm.daemon = True
        alarm.start()
        # A launcher answers those who know its pod's uid.
        connection.request("GET", path, headers={"Authorization": f"Bearer {target.uid}"})
        response = connection.getresponse()
        # Launchers send no chunks, whose sizes http.client believes: one of -1 is read without end.
        return response.read(_STATUS_LIMIT) if response.status == 200 and not response.chunked else b""
    except (OSError, http.client.HTTPException, ValueError):
        return b""  # ValueError: http.client's own word for a header or a chunk that is not one.
    finally:
        if alarm is not None:
            alarm.cancel()
        connection.close()


def _end(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has been closed meanwhile.


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
