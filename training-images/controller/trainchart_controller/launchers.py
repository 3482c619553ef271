"""What the launchers in the training pods say over HTTP: what their programs do, and how they have ended.

Not the API server's business: a pod that does not answer is no trouble, and nothing waits long for it. Whatever runs in
the pod may write the answers, so each is bounded in time, size and depth.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from trainchart_controller.short_response import Alarm, ShortResponse
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
_STATUS_LIMIT = 240_000
"""Bytes: more than a launcher's longest answer, with the metrics that a program may report."""
_BODY_LIMIT = 248 * 1024
"""Bytes that may come after the headers."""


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


class _ShortResponse(ShortResponse):
    body_limit = _BODY_LIMIT


def _fetch(target: Target, port: int, path: str) -> bytes:
    """Return the body of an answer, cut at a limit; nothing where it is not there in time."""
    connection = http.client.HTTPConnection(target.ip, port, timeout=_ANSWER_SECONDS)
    connection.response_class = _ShortResponse
    alarm = Alarm(_ANSWER_SECONDS)
    try:
        connection.connect()
        alarm.start(connection.sock)
        # A launcher answers those who know its pod's uid.
        connection.request("GET", path, headers={"Authorization": f"Bearer {target.uid}"})
        response = connection.getresponse()
        # Launchers send no chunks, whose sizes http.client believes: one of -1 is read without end.
        return response.read(_STATUS_LIMIT) if response.status == 200 and not response.chunked else b""
    except (OSError, http.client.HTTPException, ValueError):
        return b""  # ValueError: http.client's own word for a header or a chunk that is not one.
    finally:
        alarm.stop()
        connection.close()


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
