"""The pod of a release that shows the volumes of others: which one answers, and why none does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_events
from trainchart.cluster.snapshot import Object, has_ended, listed, name_of
from trainchart.errors import ClusterError, NotFound, NotInTime, Unreachable
from trainchart_runtime.causes import CAUSES
from trainchart_runtime.contract import INSTANCE_LABEL
from trainchart_runtime.pod_problems import Event, find_pod_problem, parse_event

_POLL_SECONDS = 0.5
_LOOK_SECONDS = 5.0
_START_SECONDS = 600.0
"""How long a pod may take to start about which Kubernetes says nothing: the image may be large."""
_PATIENCE_SECONDS = 60.0
"""How long what keeps a pod from starting may last: volumes are attached, nodes get free."""
_REFUSED_SECONDS = 5.0
"""How long the ReplicaSet may be refused its pod."""
_TRIES = 6
"""How often in a row the cluster may fail to answer."""
_WORDS_KEPT = 300


@dataclass
class ViewerPod:
    """The pod of an installed release; Kubernetes replaces it where its node is lost."""

    api: KubernetesApi
    namespace: str
    release: str
    image: str
    """Empty: that of the chart."""
    tell: Callable[[str], None]
    _failures: int = 0
    _ends_told: set[tuple[str, str]] = field(default_factory=set)

    def find_ready(self) -> str:
        """Return the name of the pod that answers. Raises NotFound where none does, and ClusterError."""
        for pod in self._list():
            if _is_ready(pod):
                return name_of(pod)
        raise NotFound(f"no pod of {self.release} is ready")

    def await_ready(self) -> None:
        """Wait for the pod.

        Raises:
            ClusterError: it does not start, its program has ended, or the cluster does not answer any more.
            NotInTime: it is not ready after ten minutes.
        """
        began = time.monotonic()
        while True:
            pods = self._try_to_list()
            if pods is not None:
                if any(map(_is_ready, pods)):
                    return
                for pod in pods:
                    for ended in _find_ends(pod):
                        raise self._explain_end(pod, ended)
                self._require_hope(pods, time.monotonic() - began)
            time.sleep(_POLL_SECONDS)

    def watch(self) -> NoReturn:
        """Wait, and tell of each end of the pod's program, until the pod answers no more and none takes its place.

        Raises:
            ClusterError: the release was uninstalled, no pod starts, or the cluster does not answer any more.
            NotInTime: no pod is ready after ten minutes.
        """
        seen = time.monotonic()
        while True:
            time.sleep(_LOOK_SECONDS)
            pods = self._try_to_list()
            if pods is None:
                continue
            self._tell_of_ends(pods)
            if any(map(_is_ready, pods)):
                seen = time.monotonic()
            elif not pods and self._is_uninstalled():
                raise ClusterError(f"the release {self.release} was uninstalled meanwhile")
            else:
                self._require_hope(pods, time.monotonic() - seen)

    def _list(self) -> list[Object]:
        labels = f"{INSTANCE_LABEL}={self.release}"
        return [
            pod
            for pod in self.api.list_objects(kubernetes_api.PODS, self.namespace, labels=labels)
            if not has_ended(pod)
        ]

    def _try_to_list(self) -> list[Object] | None:
        """Return the pods; None where the cluster does not answer, which may pass."""
        try:
            pods = self._list()
        except Unreachable:
            self._failures += 1
            if self._failures == _TRIES:
                raise
            time.sleep(_POLL_SECONDS * 2**self._failures)
            return None
        self._failures = 0
        return pods

    def _is_uninstalled(self) -> bool:
        try:
            self.api.read_object(kubernetes_api.DEPLOYMENTS, self.namespace, self.release)
        except NotFound:
            return True
        except Unreachable:
            pass
        return False

    def _tell_of_ends(self, pods: list[Object]) -> None:
        for pod in pods:
            for ended in _find_ends(pod):
                end = (name_of(pod), str(ended.get("finishedAt")))
                if end not in self._ends_told:
                    self._ends_told.add(end)
                    self.tell(f"note: {self._explain_end(pod, ended).message}; Kubernetes starts it again")

    def _explain_end(self, pod: Object, ended: Object) -> ClusterError:
        said = " ".join(str(ended.get("message") or ended.get("reason") or "").split())[-_WORDS_KEPT:]
        return ClusterError(
            f"the program of {name_of(pod)} has ended with exit code {ended.get('exitCode')}: {said or 'no message'}",
            hint=f"does {self.image or 'the image'} contain what it needs? Choose another one: --image",
        )

    def _require_hope(self, pods: list[Object], seconds: float) -> None:
        """Raise where no pod will get ready: ClusterError says why, NotInTime that it takes too long."""
        try:
            events = [parse_event(event) for event in listed(read_events(self.api, self.namespace))]
        except Unreachable:
            return
        if not pods and seconds > _REFUSED_SECONDS and (refused := self._find_refusal(events)):
            raise ClusterError(f"the pod of {self.release} is refused: {refused}")
        for pod in pods:
            problem = find_pod_problem(pod, events)
            if problem is not None and seconds > _PATIENCE_SECONDS:
                hint = CAUSES[problem.cause].hint
                raise ClusterError(f"the pod {name_of(pod)} does not start: {problem.message}", hint=hint)
        if seconds > _START_SECONDS:
            place = f"-n {self.namespace} -l {INSTANCE_LABEL}={self.release}"
            raise NotInTime(
                f"no pod of {self.release} has been ready for {_START_SECONDS:.0f} seconds",
                hint=f"see how it starts: kubectl describe pod {place}",
            )

    def _find_refusal(self, events: list[Event]) -> str:
        for event in events:
            if event.kind == "ReplicaSet" and event.name.startswith(self.release) and event.reason == "FailedCreate":
                return event.message
        return ""


def _is_ready(pod: Object) -> bool:
    conditions = mappings_at(pod, "status", "conditions")
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _find_ends(pod: Object) -> list[Any]:
    """Return how the pod's program has ended: now, or the last time."""
    found = (
        mapping_at(status, key, "terminated")
        for status in mappings_at(pod, "status", "containerStatuses")
        for key in ("state", "lastState")
    )
    return [ended for ended in found if ended]
