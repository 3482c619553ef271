"""Keeps the list of training pods: a thread that lists, watches, and lists again after any trouble.

The main loop owns what it gets from the queue, so nothing here is shared but the queue.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import urlencode

from trainchart_controller.api import Api, ApiError, Gone
from trainchart_controller.backoff import FIRST_SECONDS, LONGEST_SECONDS, Backoff
from trainchart_controller.console import TroubleLog
from trainchart_controller.launchers import LauncherAnswer
from trainchart_controller.notify import NoticeOutcome
from trainchart_runtime.cluster import Cluster
from trainchart_runtime.pod_problems import Problem
from trainchart_runtime.run.observation import PodView, parse_pod

_PAGE = 25
"""Pods in one answer: a thousand at once would be ten megabytes of JSON, and several times that in memory."""


class PodList(NamedTuple):
    """All training pods there are."""

    pods: List[PodView]


class PodChange(NamedTuple):
    """One pod as it is now, or as it was at last."""

    pod: PodView
    is_gone: bool = False


class WorkloadSeen(NamedTuple):
    """The run's Workload in its queue as it is now; None where there is none."""

    item: Optional[Mapping[str, Any]]
    problem: Optional[Problem] = None
    """Why it could not be asked for."""


WatchItem = Union[PodList, PodChange, LauncherAnswer, WorkloadSeen, NoticeOutcome, Exception]
"""An exception is a bug of ours: the thread is at its end, and the controller must not go on blind."""


class WatchTimes(NamedTuple):
    """Seconds of patience."""

    watch: float = 300.0
    """After which the server ends a watch, which then goes on where it was."""
    silence: float = 100.0
    """After which a silent watch is given up; servers send a bookmark every minute."""
    first_retry: float = FIRST_SECONDS
    record: float = 30.0
    """After which the record is read again, whether or not it was touched."""
    objects: float = 45.0
    """After which the objects beside the sets are read again: no pod tells that they are deleted or changed."""
    refusal: float = 60.0
    """After which a token that is refused all the time will not be accepted any more."""
    rollback: float = 3600.0
    """For which a controller whose plan was replaced waits for a rollback."""


class PodWatch:
    """Feeds `observations` without end."""

    def __init__(
        self, api: Api, cluster: Cluster, namespace: str, selector: str, times: Optional[WatchTimes] = None
    ) -> None:
        self.observations: queue.Queue[WatchItem] = queue.Queue()
        self._api = api
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = selector
        self._times = times or WatchTimes()
        self._trouble = TroubleLog("watching pods")
        self._backoff = Backoff(self._times.first_retry)

    def start(self) -> None:
        threading.Thread(target=self._run, name="pod-watch", daemon=True).start()

    def _run(self) -> None:
        try:
            self._watch_for_ever()
        except Exception as err:
            self.observations.put(err)

    def _watch_for_ever(self) -> None:
        version = ""
        while True:
            began = time.monotonic()
            try:
                if not version:
                    version = self._list()
                version = self._follow(version)
                # A connection cut between two events looks like the end of the watch: both may go on, neither at once.
                time.sleep(self._times.first_retry)
            except ApiError as err:
                self._trouble.fail(err)
                version = ""
                if time.monotonic() - began > LONGEST_SECONDS:
                    # It did work, for so long.
                    self._backoff.succeed()
                time.sleep(self._backoff.fail(err))

    def _list(self) -> str:
        """Hand over all pods and return the resourceVersion to watch from."""
        query = {"labelSelector": self._selector}
        found = self._api.read_list(self._path, query, _PAGE, lambda pod: parse_pod(self._cluster, pod))
        self.observations.put(PodList(found.items))
        return found.version

    def _follow(self, version: str) -> str:
        """Hand over changes until the server ends the watch; return where the next one goes on."""
        query = {
            "watch": 1,
            "labelSelector": self._selector,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": int(self._times.watch),
        }
        for event in self._api.watch(f"{self._path}?{urlencode(query)}", self._times.silence):
            kind, item = event.get("type"), event.get("object") or {}
            if kind == "ERROR":
                raise Gone(f"the watch ended: {item.get('message') or item}", item.get("code") or 0)
            self._trouble.succeed()
            self._backoff.succeed()
            version = (item.get("metadata") or {}).get("resourceVersion") or version
            view = parse_pod(self._cluster, item) if kind != "BOOKMARK" else None
            if view:
                self.observations.put(PodChange(view, is_gone=kind == "DELETED"))
            del event, item  # Each may have megabytes, and the next one is read before these are replaced.
        return version
