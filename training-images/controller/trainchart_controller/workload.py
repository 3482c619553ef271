"""The run's Workload in Kueue's API: a thread that watches it, and the few requests that change it.

What to do with it is decided in trainchart_runtime.run.queue_rules; why it is ours: docs/decisions/0018-queues.md.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlencode

from trainchart_controller.api import APPLY, Api, ApiError, Conflict, Gone, NotFound, Refused
from trainchart_controller.backoff import Backoff
from trainchart_controller.console import TroubleLog, print_line
from trainchart_controller.pod_watch import WatchItem, WatchTimes, WorkloadSeen
from trainchart_controller.settings import Settings
from trainchart_runtime import pod_causes
from trainchart_runtime.contract import CONTROLLER_AGENT
from trainchart_runtime.pod_problems import Problem
from trainchart_runtime.run.observation import SetView
from trainchart_runtime.run.queueing import (
    ASKS_ANNOTATION,
    CREATE,
    DELETE,
    FINISH,
    READY,
    Placement,
    QueueStep,
    QueueView,
    find_conditions,
    parse_workload,
)

GROUP = "/apis/kueue.x-k8s.io/v1beta2"
_UNREAD_SECONDS = 15.0
"""After which flavors or a priority that could not be read are asked for again."""
_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Reasons of an eviction after which a Workload waits again. After others Kueue itself says when: a stopped queue is
started, a pause is over."""


class WorkloadWatch:
    """Feeds `observations` with the run's Workload, without end."""

    def __init__(self, api: Api, settings: Settings, times: WatchTimes, observations: queue.Queue[WatchItem]) -> None:
        self._api = api
        self._path = f"{GROUP}/namespaces/{settings.namespace}/workloads"
        self._selector = f"metadata.name={settings.workload}"
        self._times = times
        self._observations = observations
        self._trouble = TroubleLog("watching the Workload")
        self._backoff = Backoff(times.first_retry)

    def start(self) -> None:
        threading.Thread(target=self._run, name="workload-watch", daemon=True).start()

    def _run(self) -> None:
        try:
            self._watch_for_ever()
        except Exception as err:
            self._observations.put(err)

    def _watch_for_ever(self) -> None:
        while True:
            try:
                self._follow(self._list())
                time.sleep(self._times.first_retry)
            except ApiError as err:
                self._trouble.fail(err)
                problem = _explain(err)
                if problem is not None:
                    self._observations.put(WorkloadSeen(None, problem))
                time.sleep(self._backoff.fail(err))

    def _list(self) -> str:
        """Hand over the Workload and return the resourceVersion to watch from."""
        found = self._api.request("GET", f"{self._path}?{urlencode({'fieldSelector': self._selector})}")
        items = found.get("items") or ()
        self._observations.put(WorkloadSeen(items[0] if items else None))
        self._trouble.succeed()
        self._backoff.succeed()
        return str((found.get("metadata") or {}).get("resourceVersion") or "")

    def _follow(self, version: str) -> None:
        query = {"watch": 1, "fieldSelector": self._selector, "resourceVersion": version}
        query.update(allowWatchBookmarks="true", timeoutSeconds=int(self._times.watch))
        for event in self._api.watch(f"{self._path}?{urlencode(query)}", self._times.silence):
            kind, item = event.get("type"), event.get("object") or {}
            if kind == "ERROR":
                raise Gone(f"the watch ended: {item.get('message') or item}", item.get("code") or 0)
            if kind != "BOOKMARK":
                self._observations.put(WorkloadSeen(None if kind == "DELETED" else item))


class RunQueue:
    """What the main loop knows of the queue, and its requests; every request raises ApiError."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._settings = settings
        self._path = f"{GROUP}/namespaces/{settings.namespace}/workloads/{settings.workload}"
        self._item: Optional[Mapping[str, Any]] = None
        self._problem: Optional[Problem] = None
        self._admission: Any = None
        """Of the Workload, for which `_placements` are."""
        self._placements: Optional[Mapping[str, Placement]] = None
        self._priority: Optional[Mapping[str, Any]] = None
        self._unread: Optional[Problem] = None
        """Why placements or priority could not be read."""
        self._unread_until = 0.0
        """time.monotonic() at which they are asked for again."""
        self.is_seen = not settings.plan.queue
        """Whether the first answer has come."""

    def take_in(self, seen: WorkloadSeen) -> None:
        """Take in what the watch has seen; what it could not see stays as it was."""
        self.is_seen = True
        self._problem = seen.problem
        if seen.problem is None:
            self._item = seen.item

    def look(self) -> QueueView:
        """Return what is known of the queue; what is needed next, a priority or flavors, is read first."""
        name = self._settings.plan.queue
        if not name:
            return QueueView()
        workload = parse_workload(self._item) if self._item else None
        admission = (
            ((self._item or {}).get("status") or {}).get("admission") if workload and workload.is_admitted else None
        )
        if admission != self._admission:
            self._admission, self._placements, self._unread = admission, None, None
        if self._problem is None and time.monotonic() >= self.wake_at:
            self._read_on(admission)
        return QueueView(name, workload, self._placements, self._problem or self._unread)

    @property
    def wake_at(self) -> float:
        """time.monotonic() at which to look again, though nothing has changed; 0 where nothing is waited for."""
        return self._unread_until if self._unread else 0.0

    def _read_on(self, admission: Any) -> None:
        try:
            if self._item is None and self._priority is None:
                self._priority = self._read_priority()
            if admission and self._placements is None:
                self._placements = self._resolve_placements(admission)
            self._unread = None
        except (Refused, _Unsupported) as err:
            self._unread = Problem(pod_causes.QUEUE_UNUSABLE.name, str(err))
            self._unread_until = time.monotonic() + _UNREAD_SECONDS

    def _resolve_placements(self, admission: Any) -> Dict[str, Placement]:
        flavors: Dict[str, Mapping[str, Any]] = {}
        placements = {}
        for assignment in admission.get("podSetAssignments") or ():
            role = str(assignment.get("name"))
            if assignment.get("topologyAssignment"):
                raise _Unsupported(f"the flavor of {role} has a topology, which run controllers do not follow")
            names = sorted(set((assignment.get("flavors") or {}).values()))
            for name in names:
                if name not in flavors:
                    flavors[name] = self._api.request("GET", f"{GROUP}/resourceflavors/{name}").get("spec") or {}
            placements[role] = _merge(role, [flavors[name] for name in names], self._item or {})
        return placements

    def act(self, step: QueueStep, sets: Mapping[str, SetView]) -> None:
        """Change the Workload."""
        if step.action == CREATE:
            self._create(step, sets)
        elif step.action == DELETE:
            uid = ((self._item or {}).get("metadata") or {}).get("uid")
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
            try:
                self._api.request("DELETE", self._path, body)
            except (NotFound, Conflict):
                pass
            self._item = None
        else:
            self._patch_status(step)
        print_line(f"Workload {self._settings.workload}: {step.action}")

    def _create(self, step: QueueStep, sets: Mapping[str, SetView]) -> None:
        spec = {**step.spec, **(self._priority or {})}
        # It goes when the last of them is gone, as the release does.
        owners = [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": view.uid}
            for name, view in sorted(sets.items())
        ]
        metadata = {
            "name": self._settings.workload,
            "annotations": {ASKS_ANNOTATION: step.asks},
            "labels": self._settings.labels,
            "ownerReferences": owners,
        }
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec}
        self._item = self._api.request(APPLY, f"{self._path}?fieldManager={CONTROLLER_AGENT}&force=true", body)

    def _read_priority(self) -> Mapping[str, Any]:
        name = self._settings.plan.queue_priority_class
        if not name:
            # Without any, Kueue 0.17 answers no question about the whole queue.
            return {"priority": 0}
        found = self._api.request("GET", f"{GROUP}/workloadpriorityclasses/{name}")
        reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name}
        return {"priority": int(found.get("value") or 0), "priorityClassRef": reference}

    def _patch_status(self, step: QueueStep) -> None:
        item = self._item or {}
        metadata, status = item.get("metadata") or {}, item.get("status") or {}
        conditions, changes = change_conditions(step, status, int(metadata.get("generation") or 0))
        body = {
            "metadata": {"resourceVersion": metadata.get("resourceVersion")},
            "status": {"conditions": conditions, **changes},
        }
        self._item = self._api.request("PATCH", f"{self._path}/status", body)


class _Unsupported(Exception):
    """An admission that pods cannot follow."""


def change_conditions(
    step: QueueStep, status: Mapping[str, Any], generation: int
) -> Tuple[List[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the conditions of a Workload after a step, and what else of its status changes."""
    conditions = find_conditions(status)
    evicted = conditions.get("Evicted") or {}
    reason, message = str(evicted.get("reason") or ""), str(evicted.get("message") or "")
    changes: Dict[str, Any] = {}
    if step.action == READY:
        new = [("PodsReady", True, "Started", "All pods are running")]
    elif step.action == FINISH:
        new = [("Finished", True, step.reason, step.message)]
    else:
        changes = {"admission": None}
        new = [
            ("QuotaReserved", False, "Pending", message),
            ("Admitted", False, "NoReservation", "The workload has no reservation"),
            ("PodsReady", False, "WaitForStart", "Not all pods are running"),
            ("Requeued", reason in _REQUEUED_AT_ONCE, reason, message),
        ]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for kind, is_true, why, words in new:
        value = "True" if is_true else "False"
        old = conditions.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == value else now
        conditions[kind] = {"type": kind, "status": value, "reason": why or "Unknown", "message": words}
        conditions[kind] = {**conditions[kind], "lastTransitionTime": since, "observedGeneration": generation}
    return list(conditions.values()), changes


def _merge(role: str, flavors: List[Mapping[str, Any]], item: Mapping[str, Any]) -> Placement:
    """Return what flavors and admission checks add to the pods of a role."""
    selector: Dict[str, str] = {}
    tolerations: List[Mapping[str, Any]] = []
    labels: Dict[str, str] = {}
    annotations: Dict[str, str] = {}
    for flavor in flavors:
        selector.update(flavor.get("nodeLabels") or {})
        tolerations += flavor.get("tolerations") or ()
    for check in (item.get("status") or {}).get("admissionChecks") or ():
        for update in check.get("podSetUpdates") or ():
            if update.get("name") == role:
                selector.update(update.get("nodeSelector") or {})
                tolerations += update.get("tolerations") or ()
                labels.update(update.get("labels") or {})
                annotations.update(update.get("annotations") or {})
    return Placement(selector, tuple(tolerations), labels, annotations)


def _explain(err: ApiError) -> Optional[Problem]:
    """Return what an error of the watch says about the queue; None where it says nothing about it."""
    if isinstance(err, NotFound):
        return Problem(pod_causes.QUEUE_UNUSABLE.name, "the cluster does not know Kueue's Workloads (v1beta2)")
    if isinstance(err, Refused) and err.status == 403:
        return Problem(pod_causes.QUEUE_UNUSABLE.name, str(err))
    return None
