"""How long a stopped task goes on: until the leading task has ended, which may still save, or its time is over.

When everything stops at once, as by `helm uninstall`, a leader whose parameter servers have gone can save nothing any
more. The leader's launcher says on its open page /metrics what its program does; what does not answer may still save.
"""

from __future__ import annotations

import errno
import re
import socket
import threading
import time
from typing import Callable, Optional, Tuple

from trainchart_launcher.settings import Settings
from trainchart_runtime.cluster import tasks_to_outlive

_PAUSE_SECONDS = 0.1
_PAUSE_PER_TASK_SECONDS = 0.002
"""More in a large group: a thousand tasks ask the leader five hundred times a second, while it saves."""
_ANSWER_SECONDS = 1.0
_ANSWER_LIMIT = 65_536
"""Bytes: the state is among the first lines."""
_STATE = re.compile(rb'^trainchart_state\{[^}\n]{0,500}?state="([a-z]{1,30})"[^}\n]{0,500}\} 1\.0$', re.MULTILINE)
_NOBODY = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
_ENDED = (b"waiting", b"parked")
"""States in which no program runs that could save."""


class LeaderWait:
    """Asks the leading tasks in the background, until all have ended or time.monotonic() is `until`."""

    def __init__(self, settings: Settings, until: float, on_end: Callable[[], None]) -> None:
        cluster, addresses = settings.cluster, settings.addresses
        hosts = [
            cluster.address(task, cluster.status_port) for task in tasks_to_outlive(settings.cluster, settings.task)
        ]
        self._addresses = [addresses.get(host, host) for host in hosts]
        tasks = sum(role.replicas for role in cluster.roles.values())
        self._pause_seconds = _PAUSE_SECONDS + _PAUSE_PER_TASK_SECONDS * tasks
        self._until = until
        self._on_end = on_end
        self.is_over = False

    def start(self) -> None:
        threading.Thread(target=self._wait, daemon=True, name="leader-wait").start()

    def _wait(self) -> None:
        # Once: the names are the first thing to go when a release is uninstalled.
        places = [_resolve(address) for address in self._addresses]
        while time.monotonic() < self._until and not all(place and _has_ended(place) for place in places):
            time.sleep(min(self._pause_seconds, max(self._until - time.monotonic(), 0)))
        self.is_over = True
        self._on_end()


def _resolve(address: str) -> Optional[Tuple[str, int]]:
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]").encode(), int(port), type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return None
    return str(found[0][4][0]), int(port)


def _has_ended(place: Tuple[str, int]) -> bool:
    """Say whether the launcher of a task, or its pod, has ended, or says that its program has."""
    try:
        connection = socket.create_connection(place, _ANSWER_SECONDS)
    except OSError as err:
        return err.errno in _NOBODY
    with connection:
        found = _STATE.search(_read_page(connection))
    return found is not None and found.group(1) in _ENDED


def _read_page(connection: socket.socket) -> bytes:
    """Return as much of the page as there is, and comes in time."""
    answer, until = b"", time.monotonic() + _ANSWER_SECONDS
    try:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        while len(answer) < _ANSWER_LIMIT and time.monotonic() < until:
            piece = connection.recv(_ANSWER_LIMIT)
            if not piece:
                break
            answer += piece
    except OSError:
        pass  # Too many ask at once, or the leader is busy.
    return answer
