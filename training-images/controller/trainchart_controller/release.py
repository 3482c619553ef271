"""The release's objects that the controller reads and writes.

They are its record, its sets, pods that must go, Events, and the controller's own Job.
"""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Mapping, Optional, Sequence

from trainchart_controller.api import APPLY, Api, Conflict, NotFound, Refused
from trainchart_controller.settings import OBJECT_PATHS, Settings
from trainchart_runtime.contract import CONTROLLER_AGENT, LOGS_KEY, PLAN_ANNOTATION, STATE_KEY
from trainchart_runtime.pod_problems import Event, parse_event
from trainchart_runtime.run.observation import SetView, parse_set
from trainchart_runtime.run.plan import Admission, Deletion, Notice, Scale, require_group
from trainchart_runtime.run.state import RunState, StateError, dump_state, parse_state

_CLAIM = "PersistentVolumeClaim"
"""Claims have names of any kind: which of them are this release's, its pods say."""
_CRASHES = 1000
"""Pods of the controller that may fail: a crash of it costs nothing but time."""
_EVENT_PAGE = 100
_EVENT_PAGES = 20
"""Pages that are read at most: more Events say nothing new."""
_TOO_LARGE = (413, 422)
"""Status codes of refused writes of what does not fit into an object."""


class Superseded(Exception):
    """The release has another plan by now, which another controller follows."""


class JobGone(Exception):
    """The controller's own Job is gone: the release is being removed, or is another one by now."""


class Release:
    """Reads and writes one release; every method raises ApiError."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._settings = settings
        namespace = settings.namespace
        self._record_path = f"/api/v1/namespaces/{namespace}/configmaps/{settings.state_name}"
        self._sets_path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        self._pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self._job_path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{settings.job_name}"
        self._events_path = f"/api/v1/namespaces/{namespace}/events"
        self._metadata: Mapping[str, Any] = {}
        """Of the record, as it was read last."""
        self._version = ""
        self._uid = ""
        self._job_uid = ""

    def read_state(self) -> Optional[RunState]:
        """Return the recorded state, None where there is none yet.

        Raises StateError for a damaged one, and Superseded where the record is for another plan.
        """
        found = self._api.request("GET", self._record_path)
        self._remember(found)
        self._metadata = found.get("metadata") or {}
        plan = ((found.get("metadata") or {}).get("annotations") or {}).get(PLAN_ANNOTATION)
        if plan and plan != self._settings.plan_id:
            raise Superseded(f"plan {plan} has replaced plan {self._settings.plan_id}")
        text = (found.get("data") or {}).get(STATE_KEY)
        try:
            state = parse_state(text) if text else None
            if state is not None:
                require_group(self._settings.plan, state)
            return state
        except StateError as err:
            raise StateError(f"the record in ConfigMap {self._settings.state_name} is unusable: {err}") from err

    def write_state(self, state: RunState, logs: Mapping[str, Any]) -> None:
        """Record the state, and `logs` if there are any; raises Conflict where it has changed since it was read."""
        data: Dict[str, Optional[str]] = {STATE_KEY: dump_state(state)}
        if logs:
            data[LOGS_KEY] = json.dumps(logs)
        body: Dict[str, Any] = {"metadata": {"resourceVersion": self._version}, "data": data}
        try:
            self._remember(self._api.request("PATCH", self._record_path, body))
        except Refused as err:
            if err.status not in _TOO_LARGE:
                raise
            # What others have written into the record may fill it.
            found = self._api.request("GET", self._record_path)
            if found.get("immutable"):
                name = self._settings.state_name
                words = f"ConfigMap {name} is immutable: delete it, and the run controller writes the record again"
                raise StateError(words) from err
            body["data"] = {**dict.fromkeys(found.get("data") or {}), STATE_KEY: data[STATE_KEY]}
            body["binaryData"] = None
            self._remember(self._api.request("PATCH", self._record_path, body))

    def restore_record(self, state: RunState) -> None:
        """Write a record that was deleted or damaged once more, as it was.

        Raises JobGone.
        """
        if self.is_job_gone():
            raise JobGone("this controller's Job is gone")
        metadata = {key: self._metadata[key] for key in ("labels", "annotations") if self._metadata.get(key)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._settings.state_name, **metadata}}
        # As Helm would make it, and in its name: else Helm 4 could not change it any more.
        self._remember(self._api.request(APPLY, f"{self._record_path}?fieldManager=helm&force=true", body))
        self.write_state(state, {})

    def is_job_gone(self) -> bool:
        """Return whether the controller's own Job was deleted, as far as the chart names it."""
        if not self._settings.job_name:
            return False
        try:
            job = self._api.request("GET", self._job_path)
        except NotFound:
            return True
        metadata = job.get("metadata") or {}
        # Where the Job could not be changed, its uid is not known.
        is_other = bool(self._job_uid) and metadata.get("uid") != self._job_uid
        return bool(metadata.get("deletionTimestamp")) or is_other

    def read_sets(self) -> Dict[str, SetView]:
        """Return the sets of the run; one that does not exist is left out."""
        found = {}
        for role in self._settings.plan.cluster.roles.values():
            try:
                found[role.name] = parse_set(self._api.request("GET", f"{self._sets_path}/{role.name}"))
            except NotFound:
                continue
        return found

    def find_missing(self) -> Mapping[str, str]:
        """Return which of the objects that the run needs beside its sets are gone or changed, as far as may be read."""
        missing = {}
        for each in self._settings.objects:
            kind, _, name = each.partition(" ")
            try:
                found = self._api.request("GET", OBJECT_PATHS[kind].format(self._settings.namespace, name))
            except NotFound:
                missing[each] = "it was deleted"
            except Refused:
                continue
            else:
                words = self._compare_selector(found) if kind == "Service" else ""
                if words:
                    missing[each] = words
        return missing

    def _compare_selector(self, service: Mapping[str, Any]) -> str:
        """Return why a Service does not find the run's pods; "" where it does."""
        wanted = (service.get("spec") or {}).get("selector") or {}
        own = dict(pair.split("=", 1) for pair in self._settings.selector.split(","))
        strange = ", ".join(f"{key}={value}" for key, value in sorted(wanted.items()) if own.get(key) != value)
        if wanted and not strange:
            return ""
        change = f"no pod has {strange}" if strange else "it selects nothing"
        return f"its selector was changed, so that no pod's name resolves: {change}"

    def scale(self, change: Scale) -> int:
        """Give a set its replicas and return what it is told to have."""
        body = {"spec": {"replicas": change.replicas}}
        answer = self._api.request("PATCH", f"{self._sets_path}/{change.set_name}/scale", body)
        # A replica number of 0 is left out of the JSON.
        return int((answer.get("spec") or {}).get("replicas") or 0)

    def delete(self, deletion: Deletion) -> None:
        """Delete a pod, if it is still the one that was meant."""
        body: Dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": deletion.uid}}
        if deletion.is_forced:
            body["gracePeriodSeconds"] = 0
        try:
            self._api.request("DELETE", f"{self._pods_path}/{deletion.pod_name}", body)
        except (NotFound, Conflict):
            # Gone already, or another pod has taken its name.
            pass

    def admit(self, admission: Admission) -> None:
        """Let a pod go on to a node, where its queue has room for it; if it is still the one that was meant."""
        placement = admission.placement
        spec: Dict[str, Any] = {"schedulingGates": [{"name": gate} for gate in admission.gates]}
        if placement.node_selector:
            spec["nodeSelector"] = placement.node_selector
        if placement.tolerations:
            spec["tolerations"] = admission.tolerations
        metadata = {"uid": admission.uid, "labels": placement.labels, "annotations": placement.annotations}
        try:
            self._api.request("PATCH", f"{self._pods_path}/{admission.pod_name}", {"metadata": metadata, "spec": spec})
        except (NotFound, Conflict):
            # Gone already, or another pod has taken its name.
            pass

    def read_events(self) -> Sequence[Event]:
        """Return the warnings about the release's sets, pods and claims, and which pods took the place of others."""
        return (*self._list_events("type=Warning"), *self._list_events("reason=Preempted"))

    def _list_events(self, selector: str) -> Sequence[Event]:
        names = tuple(role.name for role in self._settings.plan.cluster.roles.values())

        def parse(item: Mapping[str, Any]) -> Optional[Event]:
            event = parse_event(item)
            return event if event.kind == "PersistentVolumeClaim" or event.name.startswith(names) else None

        query = {"fieldSelector": selector}
        return self._api.read_list(self._events_path, query, _EVENT_PAGE, parse, most=_EVENT_PAGES).items

    def tell(self, notice: Notice) -> None:
        """Create an Event on the record."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": self._settings.state_name, "uid": self._uid}
        body = {
            "metadata": {"generateName": f"{self._settings.state_name}.", "namespace": self._settings.namespace},
            "involvedObject": {**reference, "namespace": self._settings.namespace},
            "type": "Warning" if notice.is_warning else "Normal",
            "reason": notice.reason,
            "message": notice.message,
            "source": {"component": CONTROLLER_AGENT},
            "reportingComponent": CONTROLLER_AGENT,
            "reportingInstance": self._settings.pod_name,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._api.request("POST", self._events_path, body)

    def tolerate_crashes(self) -> int:
        """Let the controller's Job replace the controller however often it ends; return how often it did."""
        return self._limit_crashes(_CRASHES)

    def fail_job(self) -> None:
        """Let the controller's next failure be the failure of its Job."""
        # Not 0: a Job that has had more failures than that would fail at once, and take this pod and its log away.
        self._limit_crashes(self.tolerate_crashes())

    def _limit_crashes(self, limit: int) -> int:
        job = self._api.request("PATCH", self._job_path, {"spec": {"backoffLimit": limit}})
        self._job_uid = (job.get("metadata") or {}).get("uid") or ""
        return int((job.get("status") or {}).get("failed") or 0)

    def _remember(self, record: Mapping[str, Any]) -> None:
        metadata = record.get("metadata") or {}
        self._version, self._uid = metadata.get("resourceVersion") or "", metadata.get("uid") or ""
