"""The release's objects that the controller writes: its record, the replicas of its sets, and Events."""

from __future__ import annotations

import time
from typing import Any, Dict, Mapping, Optional

from trainchart_controller.api import Api, NotFound
from trainchart_controller.settings import Settings
from trainchart_runtime.contract import STATE_KEY
from trainchart_runtime.run_rules import Notice, Scale
from trainchart_runtime.run_state import RunState, StateError, dump_state, parse_state

_COMPONENT = "trainchart-controller"


class Release:
    """Reads and writes one release; every method raises ApiError."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api = api
        self._settings = settings
        namespace = settings.namespace
        self._record_path = f"/api/v1/namespaces/{namespace}/configmaps/{settings.state_name}"
        self._sets_path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        self._events_path = f"/api/v1/namespaces/{namespace}/events"
        self._version = ""
        self._uid = ""

    def read_state(self) -> Optional[RunState]:
        """Return the recorded state, None where there is none yet; raises StateError for a damaged one."""
        found = self._api.request("GET", self._record_path)
        self._remember(found)
        text = (found.get("data") or {}).get(STATE_KEY)
        try:
            return parse_state(text) if text else None
        except StateError as err:
            raise StateError(f"the record in ConfigMap {self._settings.state_name} is unusable: {err}") from err

    def write_state(self, state: RunState) -> None:
        """Record the state; raises Conflict where somebody else has written since it was read."""
        metadata = {"resourceVersion": self._version}
        body = {"metadata": metadata, "data": {STATE_KEY: dump_state(state)}}
        self._remember(self._api.request("PATCH", self._record_path, body))

    def read_replicas(self) -> Dict[str, int]:
        """Return what every set of the run is told to have; a set that does not exist is left out."""
        found = {}
        for role in self._settings.plan.cluster.roles.values():
            try:
                found[role.name] = _replicas(self._api.request("GET", f"{self._sets_path}/{role.name}/scale"))
            except NotFound:
                continue
        return found

    def scale(self, change: Scale) -> int:
        """Give a set its replicas and return what it is told to have."""
        body = {"spec": {"replicas": change.replicas}}
        return _replicas(self._api.request("PATCH", f"{self._sets_path}/{change.set_name}/scale", body))

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
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._settings.pod_name,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._api.request("POST", self._events_path, body)

    def _remember(self, record: Mapping[str, Any]) -> None:
        metadata = record.get("metadata") or {}
        self._version, self._uid = metadata.get("resourceVersion") or "", metadata.get("uid") or ""


def _replicas(scale: Mapping[str, Any]) -> int:
    # A replica number of 0 is left out of the JSON.
    return int((scale.get("spec") or {}).get("replicas") or 0)
