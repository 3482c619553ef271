"""Reduces StatefulSets, pods and Jobs of a training to what a diagnosis needs.

What the run controller asks of a pod too is asked through trainchart_runtime, so that both see the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.gpus import count_gpus
from trainchart.cluster.snapshot import (
    Object,
    has_ended,
    is_controllers,
    items_of,
    label,
    name_of,
    section,
)
from trainchart.reports.report import BACKING_OFF, TERMINATING
from trainchart_runtime.cluster import MAX_REPLICAS, SINGLE, TASK_TYPES_BY_STRATEGY, Cluster, Role
from trainchart_runtime.contract import (
    CHART_LABEL,
    COMPONENT_LABEL,
    EVALUATOR_GRACE_ANNOTATION,
    MAX_RESTARTS,
    NAME_LABEL,
    REPLICAS_ANNOTATION,
    RUN_ID,
    START_DEADLINE_ANNOTATION,
    STATUS_PORT,
    STRATEGY_ANNOTATION,
    TF_PORT,
    TRAINING_CONTAINER,
)
from trainchart_runtime.log_text import last_line
from trainchart_runtime.pod_problems import (
    Event,
    Problem,
    find_job_problem,
    find_pod_problem,
    find_set_problem,
    parse_time,
)
from trainchart_runtime.run.observation import PodView, parse_pod

_LARGEST = 10**9
"""Of a number: anyone may write an annotation."""
_JOB_LABEL = "batch.kubernetes.io/job-name"
_ENDED_POD = ("Succeeded", "Failed")


@dataclass(frozen=True)
class RoleSet:
    """The StatefulSet of one role."""

    role: str
    name: str
    wanted: int
    """What the chart asks for."""
    requested: int
    """What the set is told to have now; 0 when the run is over or suspended."""
    strategy: str
    created: float
    is_deleting: bool
    run_id: str
    max_restarts: int
    chart: str
    """Name and version, such as mnist-0.1.0."""
    problem: Problem | None = None
    """Why its pods are not created."""
    uid: str = ""
    evaluator_grace: int = 0
    """Seconds that others than the leading task have to finish after its success."""
    start_deadline: int = 0
    """Seconds that all pods have to start; 0 for no limit."""

    @property
    def unasked_pods(self) -> list[str]:
        """Names of the pods that the chart asks for, and the set is not told to have now."""
        return [f"{self.name}-{ordinal}" for ordinal in range(self.requested, self.wanted)]


@dataclass(frozen=True)
class TrainingPod:
    """One training pod."""

    view: PodView
    phase: str
    created: float
    started: float
    """When its container was started; 0 while it is not running."""
    placed: float
    """When it was given a node, and so its resources; 0 before."""
    gpus: Mapping[str, int]
    problem: Problem | None = None

    @property
    def holds_gpus(self) -> bool:
        return bool(self.view.node) and self.phase not in _ENDED_POD

    @property
    def state(self) -> str:
        """One word, close to what kubectl says."""
        if self.view.is_deleting:
            return TERMINATING
        if self.view.is_running:
            return "Finished" if self.view.ends and self.view.ends[0].succeeded else "Running"
        if self.view.ends:
            return BACKING_OFF if self.view.is_backing_off else "Ended"
        return "Starting" if self.view.node else "Pending"


@dataclass(frozen=True)
class Controller:
    """The run controller as its Job and pods show it."""

    state: str
    """running, starting, held, finished, failed, or missing."""
    problem: str = ""
    job: str = ""
    """Name of its Job."""
    cause: str = ""
    """Name of the cause why its pod does not run; empty where none is known."""

    @property
    def subject(self) -> str:
        """What a problem of it is about."""
        return f"Job {self.job}"


def parse_set(each: Object, events: Sequence[Event]) -> RoleSet:
    """Reduce a StatefulSet; what is missing or odd in it becomes 0 or empty."""
    annotations, spec = section(each, "metadata", "annotations"), section(each, "spec")
    environment = _read_environment(section(spec, "template", "spec"))
    return RoleSet(
        role=label(each, COMPONENT_LABEL),
        name=name_of(each),
        wanted=min(_whole(annotations.get(REPLICAS_ANNOTATION)), MAX_REPLICAS),
        requested=_whole(spec.get("replicas"), 1),
        strategy=str(annotations.get(STRATEGY_ANNOTATION) or ""),
        created=parse_time(section(each, "metadata").get("creationTimestamp")),
        is_deleting="deletionTimestamp" in section(each, "metadata"),
        run_id=environment.get(RUN_ID, ""),
        max_restarts=_whole(environment.get(MAX_RESTARTS)),
        chart=label(each, CHART_LABEL) or label(each, NAME_LABEL),
        problem=find_set_problem(name_of(each), events),
        uid=str(section(each, "metadata").get("uid") or ""),
        evaluator_grace=_whole(annotations.get(EVALUATOR_GRACE_ANNOTATION)),
        start_deadline=_whole(annotations.get(START_DEADLINE_ANNOTATION)),
    )


def as_cluster(sets: Sequence[RoleSet]) -> Cluster:
    """Return the training's cluster as its StatefulSets say it; the pods' own description may be out of sight."""
    strategy = next((each.strategy for each in sets if each.strategy in TASK_TYPES_BY_STRATEGY), SINGLE)
    roles = {each.role: Role(each.name, each.wanted) for each in sets}
    return Cluster(strategy, service="", port=TF_PORT, status_port=STATUS_PORT, roles=roles)


def parse_training_pod(cluster: Cluster, pod: Object, events: Sequence[Event]) -> TrainingPod | None:
    """Reduce a training pod; None for one of no role that is known."""
    view = parse_pod(cluster, pod)
    if view is None:
        return None
    status = section(pod, "status")
    return TrainingPod(
        view=view,
        phase=str(status.get("phase") or ""),
        created=parse_time(section(pod, "metadata").get("creationTimestamp")),
        started=_started(status),
        placed=_condition_time(status, "PodScheduled") if view.node else 0.0,
        gpus=count_gpus(section(pod, "spec")),
        # An event outlives its reason: a container that runs, or has run, had what it needed.
        problem=find_pod_problem(pod, () if view.is_running or view.ends else events),
    )


def find_controller(jobs: Sequence[Object], pods: Sequence[Object], events: Sequence[Event]) -> Controller:
    """Say what the run controller does; the newest Job counts, since an upgrade replaces it."""
    jobs = sorted(filter(is_controllers, jobs), key=lambda job: str(section(job, "metadata").get("creationTimestamp")))
    if not jobs:
        return Controller("missing")
    conditions = {
        condition.get("type"): condition
        for condition in items_of(section(jobs[-1], "status"), "conditions")
        if condition.get("status") == "True"
    }
    if "Complete" in conditions:
        return Controller("finished", job=name_of(jobs[-1]))
    if "Failed" in conditions:
        return Controller("failed", str(conditions["Failed"].get("message") or ""))
    held = _find_hold(jobs[-1])
    if held:
        return Controller("held", held, name_of(jobs[-1]))
    if _whole(section(jobs[-1], "status").get("ready")):
        return Controller("running", job=name_of(jobs[-1]))
    # A controller whose plan was replaced may wait for a rollback beside it.
    own = [pod for pod in pods if is_controllers(pod) and label(pod, _JOB_LABEL) in ("", name_of(jobs[-1]))]
    alive = [pod for pod in own if not has_ended(pod)]
    problems = [problem for pod in alive if (problem := find_pod_problem(pod, events))]
    refusal = None if alive else find_job_problem(name_of(jobs[-1]), events)
    problems += [refusal] if refusal else []
    if problems:
        return Controller("starting", problems[0].message, name_of(jobs[-1]), problems[0].cause)
    words = "" if alive else "Kubernetes has not created its Job's pod yet, and no event says why"
    ends = [words for pod in own if not alive for words in _describe_ends(pod)]
    return Controller("starting", f"its pod ended with {ends[-1]}" if ends else words, name_of(jobs[-1]))


def _describe_ends(pod: Object) -> Iterator[str]:
    """Yield the exit code of each container that has failed, with its last words."""
    for container in items_of(section(pod, "status"), "containerStatuses"):
        ended = section(container, "state", "terminated")
        if ended.get("exitCode"):
            words = last_line(str(ended.get("message") or "")) or str(ended.get("reason") or "")
            yield f"exit code {ended['exitCode']}: {words}"


def _find_hold(job: Object) -> str:
    """Return why Kubernetes makes no pod of a Job; "" where it does."""
    spec = section(job, "spec")
    if spec.get("suspend") is True:
        return "its Job is suspended (spec.suspend)"
    if spec.get("parallelism") == 0:
        return "its Job may have no pod (spec.parallelism is 0)"
    keeper = spec.get("managedBy") or ""
    if keeper and keeper != "kubernetes.io/job-controller":
        return f"its Job is managed by {keeper}, not by Kubernetes (spec.managedBy)"
    return ""


def _started(status: Object) -> float:
    for container in items_of(status, "containerStatuses"):
        if container.get("name") == TRAINING_CONTAINER:
            return parse_time(section(container, "state", "running").get("startedAt"))
    return 0.0


def _condition_time(status: Object, kind: str) -> float:
    for condition in items_of(status, "conditions"):
        if condition.get("type") == kind and condition.get("status") == "True":
            return parse_time(condition.get("lastTransitionTime"))
    return 0.0


def _read_environment(pod_spec: Object) -> dict[str, str]:
    for container in items_of(pod_spec, "containers"):
        if container.get("name") == TRAINING_CONTAINER:
            return {str(each.get("name")): str(each.get("value") or "") for each in items_of(container, "env")}
    return {}


def _whole(value: Any, otherwise: int = 0) -> int:
    try:
        return min(int(value), _LARGEST)
    except (TypeError, ValueError, OverflowError):
        return otherwise
