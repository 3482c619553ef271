"""How far the rollout of a model is, whether it has failed, and how many requests fail: from one look. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.snapshot import Object, has_ended, items_of, name_of, section
from trainchart.promotion.record import Model
from trainchart_runtime.pod_problems import find_pod_problem

VERSION_ANNOTATION, CONTENT_ANNOTATION = "trainchart/version", "trainchart/content"
_WORDS_KEPT = 300
_SERVER_FAULTS = ("UNKNOWN", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS")
"""Statuses of gRPC that are 5xx over REST, but for what the client asks wrongly."""
_LARGEST_COUNT = 2.0**63
_COUNT = re.compile(
    r"^(?:trainchart_serving_requests_total|:tensorflow:serving:request_count)\{(?P<labels>[^}]*)\} (?P<count>\S+)$",
    re.MULTILINE,
)
_STATUS = re.compile(r'(?:^|,)(?:code|status)="(?P<status>[A-Z_]+)"')


@dataclass(frozen=True)
class Rollout:
    """What one look has shown of the pods with a new model."""

    wanted: int
    ready: int
    """Pods with the new model that answer."""
    is_done: bool
    pods: tuple[str, ...] = ()
    """Those with the new model that have not ended."""
    failure: str = ""
    """Why it cannot succeed; empty where it may."""
    waiting: str = ""
    """What keeps a pod from starting now."""


@dataclass(frozen=True)
class Requests:
    """How many requests were answered, and how many of them with an error of the server."""

    total: int = 0
    failed: int = 0
    unknown: int = 0
    """Pods that count what no server can have answered, of which nothing else is counted."""

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.total + other.total, self.failed + other.failed, self.unknown + other.unknown)

    @property
    def error_rate(self) -> float:
        return self.failed / self.total if self.total else 0.0


def read_rollout(deployment: Object, pods: Sequence[Object], model: Model) -> Rollout:
    """Return how far the pods of a Deployment are that serve `model`."""
    spec, status = section(deployment, "spec"), section(deployment, "status")
    wanted = _whole(spec.get("replicas"), 1)
    new = [pod for pod in pods if serves(pod, model) and not has_ended(pod)]
    ready = [pod for pod in new if _is_ready(pod)]
    numbers = [_whole(status.get(key)) for key in ("updatedReplicas", "availableReplicas", "replicas")]
    generation = _whole(section(deployment, "metadata").get("generation"))
    is_current = _whole(status.get("observedGeneration")) >= generation
    is_new = serves(
        {"metadata": section(spec, "template", "metadata"), "spec": section(spec, "template", "spec")}, model
    )
    is_done = is_current and is_new and all(number == wanted for number in numbers)
    failure = next(_find_failures(new), "") or (_find_deadline(status) if is_current and is_new else "")
    problems = (problem for pod in new if pod not in ready and (problem := find_pod_problem(pod)))
    waiting = next((f"{problem.cause}: {problem.message}" for problem in problems), "")
    return Rollout(wanted, len(ready), is_done, tuple(sorted(map(name_of, new))), failure, _cut(waiting))


def serves(pod: Object, model: Model) -> bool:
    """Return whether a pod, or a template of pods, has this model, from this claim."""
    annotations = section(pod, "metadata", "annotations")
    volumes = items_of(section(pod, "spec"), "volumes")
    claims = {str(section(volume, "persistentVolumeClaim").get("claimName") or "") for volume in volumes} - {""}
    return (
        annotations.get(VERSION_ANNOTATION) == str(model.version)
        and annotations.get(CONTENT_ANNOTATION) == model.content
        and claims == ({model.claim} - {""})
    )


def _find_failures(pods: Sequence[Object]) -> Iterator[str]:
    """Yield why containers were started again: what a pinned model cannot do once, it cannot do the next time."""
    for pod in pods:
        for kind in ("initContainerStatuses", "containerStatuses"):
            for status in items_of(section(pod, "status"), kind):
                if not _whole(status.get("restartCount")):
                    continue
                last = section(status, "lastState", "terminated") or section(status, "state", "terminated")
                lines = [line for line in str(last.get("message") or "").splitlines() if line.strip()]
                words = lines[-1] if lines else str(last.get("reason") or "it was restarted")
                code = last.get("exitCode")
                what = f"{status.get('name')} of {name_of(pod)} ended with exit code {code}"
                yield _cut(f"{what}: {words}")


def _find_deadline(status: Object) -> str:
    for each in items_of(status, "conditions"):
        if each.get("type") == "Progressing" and each.get("reason") == "ProgressDeadlineExceeded":
            return _cut(str(each.get("message") or "the Deployment's progressDeadlineSeconds have passed"))
    return ""


def count_requests(text: str) -> Requests:
    """Return the requests that a page of metrics counts, of trainchart's server or of TensorFlow Serving.

    Of a page with a count that no server can have, nothing is taken.
    """
    total = failed = 0
    for found in _COUNT.finditer(text):
        status = _STATUS.search(found["labels"])
        try:
            number = float(found["count"])
        except ValueError:
            return Requests(unknown=1)
        # Nor is NaN in between.
        if not 0 <= number <= _LARGEST_COUNT:
            return Requests(unknown=1)
        count = int(number)
        total += count
        failed += count if status and status["status"] in _SERVER_FAULTS else 0
    return Requests(total, failed)


def _is_ready(pod: Object) -> bool:
    conditions = items_of(section(pod, "status"), "conditions")
    is_leaving = "deletionTimestamp" in section(pod, "metadata")
    return not is_leaving and any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _whole(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_KEPT else f"{line[:_WORDS_KEPT]}…"
