"""What the run controller sees: the training pods of its release, reduced to what its rules need.

Parsing only. A pod object has some ten kilobytes, a PodView a few hundred bytes: the controller keeps a thousand.
"""

from __future__ import annotations

import calendar
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime.cluster import Cluster, Task
from trainchart_runtime.contract import RUN_ID, TRAINING_CONTAINER
from trainchart_runtime.termination import Termination, parse_termination

_MESSAGE_LIMIT = 500
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z")


class ContainerEnd(NamedTuple):
    """One end of a training container."""

    exit_code: int
    reason: str = ""
    """Kubernetes' word: Completed, Error, OOMKilled, StartError, ..."""
    detail: str = ""
    """The termination message where no launcher wrote it, such as the container runtime's."""
    termination: Optional[Termination] = None
    """The launcher's last words."""
    finished_at: float = 0.0

    @property
    def succeeded(self) -> bool:
        # A parked launcher that was killed has code 137 and the words "succeeded"; without words the code decides.
        return self.termination.succeeded if self.termination else self.exit_code == 0


class PodView(NamedTuple):
    """One training pod."""

    name: str
    task: Task
    uid: str = ""
    run_id: Optional[str] = None
    """None where the pod does not say."""
    node: str = ""
    is_running: bool = False
    is_deleting: bool = False
    problem: str = ""
    """Why the container does not run: the scheduler's, the kubelet's or the eviction's message."""
    restarts: int = 0
    ends: Sequence[ContainerEnd] = ()
    """The ends that Kubernetes still remembers, newest first; never more than two."""

    @property
    def deaths(self) -> int:
        """How often the container of this pod has ended."""
        ended_now = 1 if self.ends and not self.is_running else 0
        return self.restarts + ended_now


class Observation(NamedTuple):
    """One look at the release."""

    now: float
    """Unix time."""
    pods: Sequence[PodView]
    sets: Mapping[str, int]
    """StatefulSet name → replicas it is told to have. A set that does not exist is not listed."""


def find_task(cluster: Cluster, pod_name: str) -> Optional[Task]:
    """Return the task of a pod; None for one that is of no training set, such as TensorBoard's."""
    set_name, _, ordinal = pod_name.rpartition("-")
    if not (ordinal.isascii() and ordinal.isdigit()):
        return None
    for task_type, role in cluster.roles.items():
        if role.name == set_name:
            return Task(task_type, int(ordinal))
    return None


def parse_pod(cluster: Cluster, pod: Mapping[str, Any]) -> Optional[PodView]:
    """Reduce a pod object of the Kubernetes API; None for a pod that is not one of the cluster's."""
    metadata, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    name = metadata.get("name") or ""
    task = find_task(cluster, name)
    if task is None:
        return None
    container = _find_training(status.get("containerStatuses"))
    current, last = container.get("state") or {}, container.get("lastState") or {}
    ends = [_parse_end(state["terminated"]) for state in (current, last) if state.get("terminated")]
    return PodView(
        name=name,
        task=task,
        uid=metadata.get("uid") or "",
        run_id=_find_run_id(spec),
        node=spec.get("nodeName") or "",
        is_running="running" in current,
        is_deleting=bool(metadata.get("deletionTimestamp")),
        problem=_find_problem(status, current),
        restarts=container.get("restartCount") or 0,
        ends=tuple(ends),
    )


def _find_training(containers: Any) -> Mapping[str, Any]:
    found: List[Mapping[str, Any]] = [each for each in containers or () if each.get("name") == TRAINING_CONTAINER]
    return found[0] if found else {}


def _find_run_id(spec: Mapping[str, Any]) -> Optional[str]:
    for variable in _find_training(spec.get("containers")).get("env") or ():
        if variable.get("name") == RUN_ID and not variable.get("valueFrom"):
            return str(variable.get("value") or "")
    return None


def _parse_end(terminated: Mapping[str, Any]) -> ContainerEnd:
    message = terminated.get("message") or ""
    termination = parse_termination(message)
    return ContainerEnd(
        exit_code=terminated.get("exitCode") or 0,
        reason=terminated.get("reason") or "",
        detail="" if termination else message[:_MESSAGE_LIMIT],
        termination=termination,
        finished_at=_parse_time(terminated.get("finishedAt")),
    )


def _find_problem(status: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    waiting = current.get("waiting") or {}
    parts: Tuple[str, ...] = ()
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        parts = (waiting["reason"], waiting.get("message") or "")
    elif status.get("reason"):
        parts = (status["reason"], status.get("message") or "")
    else:
        for condition in status.get("conditions") or ():
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                parts = (condition.get("reason") or "", condition.get("message") or "")
    return ": ".join(part for part in parts if part)[:_MESSAGE_LIMIT]


def _parse_time(text: Any) -> float:
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    return float(calendar.timegm(tuple(int(part) for part in match.groups()))) if match else 0.0
