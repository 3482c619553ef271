"""What the launchers in the training pods say over HTTP: the leading task's state while it trains, and last lines.

Not the API server's business: a pod that does not answer is no trouble, and nobody waits long for it. Whatever runs in
the pod may write the answers, so each is bounded in time, size and depth.
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

from trainchart_runtime.cluster import Cluster, Task, deciding_tasks
from trainchart_runtime.run_observation import LeaderReport, parse_report

POLL_SECONDS = 10.0
_ANSWER_SECONDS = 2.0
_LOG_SECONDS = 1.0
"""GPUs are held while the last lines are fetched, so whoever is slow is left out."""
_STATUS_LIMIT = 200_000
"""Bytes: a launcher's longest answer, with the metrics that a program may report."""
_ANSWER_LIMIT = 2_000_000
"""Bytes: a launcher's longest log, whose end matters most."""
_LOG_LIMIT = 40_000
"""Bytes of JSON kept of one pod's lines: a record of many roles must stay below a ConfigMap's megabyte."""
_LOGS_KEPT = 8
_NO_UIDS: Mapping[str, str] = {}


class LeaderPoll:
    """Asks the leading task's launcher for its state, for ever, and hands it over in a queue."""

    def __init__(self, cluster: Cluster, sightings: "queue.Queue[Any]") -> None:
        self._address = cluster.address(deciding_tasks(cluster)[0], cluster.status_port)
        self._sightings = sightings
        self.pod_uid = ""
        """Of the leading task's pod, which shows its pages to those who know it."""

    def start(self) -> None:
        threading.Thread(target=self._run, name="leader-poll", daemon=True).start()

    def _run(self) -> None:
        last: Optional[LeaderReport] = None
        while True:
            body = _fetch(self._address, "/status", _ANSWER_SECONDS, _STATUS_LIMIT, self.pod_uid)
            report = parse_report(_parse(body)) if body else None
            if report is not None and report != last:
                self._sightings.put(report)
                last = report
            time.sleep(POLL_SECONDS)


def fetch_logs(
    cluster: Cluster, others: Sequence[Task] = (), uids: Mapping[str, str] = _NO_UIDS
) -> Dict[str, Mapping[str, Any]]:
    """Return pod name → {"at", "lines"} of the first pod of each role, and of `others`; who is silent is left out.

    `uids` are those of the pods by name: a launcher shows its log to those who know its pod's.
    """
    tasks: List[Task] = [cluster.tasks(role)[0] for role in cluster.roles if cluster.tasks(role)]
    tasks += [task for task in others if task not in tasks]
    found: Dict[str, Mapping[str, Any]] = {}

    def fetch(task: Task) -> None:
        address, uid = cluster.address(task, cluster.status_port), uids.get(cluster.pod_name(task), "")
        body = _fetch(address, "/log?lines=200", _LOG_SECONDS, _ANSWER_LIMIT, uid)
        if body:
            lines = _keep_last(body.decode("utf-8", "replace").splitlines())
            found[cluster.pod_name(task)] = {"at": round(time.time(), 3), "lines": lines}

    threads = [threading.Thread(target=fetch, args=(task,), daemon=True) for task in tasks[:_LOGS_KEPT]]
    until = time.monotonic() + _LOG_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)


def _keep_last(lines: Sequence[str]) -> List[str]:
    """Return the last lines, as many as fit; JSON makes up to twelve bytes of one character."""
    kept: List[str] = []
    room = _LOG_LIMIT
    for line in reversed(lines):
        room -= len(json.dumps([line]))
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _fetch(address: str, path: str, seconds: float, limit: int, pod_uid: str) -> bytes:
    """Return the body of an answer, cut at `limit` bytes; nothing where it is not there in time."""
    connection = http.client.HTTPConnection(address, timeout=seconds)
    # The time-out of a socket is for each read of it: an answer that comes byte by byte would take hours.
    alarm = threading.Timer(seconds, _end, [connection])
    alarm.daemon = True
    try:
        connection.connect()
        alarm.start()
        connection.request("GET", path, headers={"Authorization": f"Bearer {pod_uid}"} if pod_uid else {})
        response = connection.getresponse()
        return response.read(limit) if response.status == 200 else b""
    except (OSError, http.client.HTTPException, ValueError):
        return b""  # ValueError: http.client's own word for a header or a chunk that is not one.
    finally:
        alarm.cancel()
        connection.close()


def _end(connection: http.client.HTTPConnection) -> None:
    try:
        connection.sock.shutdown(socket.SHUT_RDWR)
    except (AttributeError, OSError):
        pass  # It has been closed meanwhile.


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
