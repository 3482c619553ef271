"""Kueue's part of the small API server: one Workload, flavors and priority classes. The test plays Kueue itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMESPACE = "team-a"
NAME = "exp1-mnist-queue"
GROUP = "/apis/kueue.x-k8s.io/"
_API = f"{GROUP}v1beta2"
WORKLOADS = f"{_API}/namespaces/{NAMESPACE}/workloads"

Answer = tuple[int, dict[str, Any]]


class FakeQueue:
    """What the API server holds for Kueue; `lock` and `version` are the server's."""

    def __init__(self, lock: threading.Condition, version: Callable[[], int]) -> None:
        self.is_installed = True
        self.workload: dict[str, Any] | None = None
        self.flavors: dict[str, dict[str, Any]] = {"default": {}}
        self.classes = {"high": 100}
        self.made = 0
        """Workloads that were created."""
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self._lock = lock
        self._version = version

    # --- what a test does ---------------------------------------------------------------------------------
    def set_conditions(self, admission: Any = None, **conditions: tuple[str, str, str]) -> None:
        """Change conditions of the Workload, each to status, reason and message; an admission where one is given."""
        with self._lock:
            assert self.workload is not None
            status = dict(self.workload["status"])
            known = {each["type"]: each for each in status.get("conditions", [])}
            for kind, (value, reason, message) in conditions.items():
                known[kind] = {"type": kind, "status": value, "reason": reason, "message": message}
            status["conditions"] = list(known.values())
            if admission is not None:
                status["admission"] = admission
            self._put("MODIFIED", {**self.workload, "status": status})

    def admit(self, flavor: str = "default") -> None:
        assert self.workload is not None
        names = [each["name"] for each in self.workload["spec"]["podSets"]]
        assignments = [{"name": name, "flavors": {"cpu": flavor}} for name in names]
        self.set_conditions(
            {"clusterQueue": "all", "podSetAssignments": assignments},
            QuotaReserved=("True", "QuotaReserved", ""),
            Admitted=("True", "Admitted", ""),
            Evicted=("False", "QuotaReserved", ""),
        )

    def preempt(self) -> None:
        self.set_conditions(Evicted=("True", "Preempted", "made room for another"))

    def delete(self) -> None:
        with self._lock:
            assert self.workload is not None
            self._put("DELETED", self.workload)
            self.workload = None

    def conditions(self) -> dict[str, str]:
        """Return type → status of the Workload's conditions."""
        found = (self.workload or {}).get("status", {}).get("conditions", [])
        return {each["type"]: each["status"] for each in found}

    # --- what a request does ------------------------------------------------------------------------------
    def route(self, method: str, path: str, body: Any) -> Answer:
        where = urlsplit(path)
        kind, _, name = where.path.removeprefix(f"{_API}/").partition("/")
        if not self.is_installed:
            return 404, {"message": "404 page not found"}
        if kind == "resourceflavors":
            return self._find(name, {key: {"spec": spec} for key, spec in self.flavors.items()})
        if kind == "workloadpriorityclasses":
            return self._find(name, {key: {"value": value} for key, value in self.classes.items()})
        if (method, where.path) == ("GET", WORKLOADS):
            assert parse_qs(where.query)["fieldSelector"] == [f"metadata.name={NAME}"]
            items = [self.workload] if self.workload else []
            return 200, {"metadata": {"resourceVersion": str(self._version())}, "items": items}
        if (method, where.path) == ("APPLY", f"{WORKLOADS}/{NAME}") and self.workload is None:
            self.made += 1
            self._put("ADDED", {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.made}"}, "status": {}})
        elif self.workload is None:
            return 404, {"message": "no Workload"}
        elif (method, where.path) == ("DELETE", f"{WORKLOADS}/{NAME}"):
            assert body["preconditions"] == {"uid": self.workload["metadata"]["uid"]}
            self.delete()
            return 200, {}
        elif (method, where.path) == ("PATCH", f"{WORKLOADS}/{NAME}/status"):
            if body["metadata"]["resourceVersion"] != self.workload["metadata"]["resourceVersion"]:
                return 409, {"message": "the object has been modified"}
            status = {**self.workload["status"], **body["status"]}
            status = {key: value for key, value in status.items() if value is not None}
            self._put("MODIFIED", {**self.workload, "status": status})
        return 200, self.workload or {}

    def _find(self, name: str, known: dict[str, dict[str, Any]]) -> Answer:
        return (200, known[name]) if name in known else (404, {"message": f"{name} not found"})

    def _put(self, kind: str, workload: dict[str, Any]) -> None:
        version = self._version()
        metadata = {**workload["metadata"], "resourceVersion": str(version)}
        self.workload = {**workload, "metadata": metadata}
        self.log.append((version, kind, self.workload))
        self._lock.notify_all()
