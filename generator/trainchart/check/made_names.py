"""The names that Kubernetes and operators make of an object's own, and how long each may be. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.check.formats import DNS_LABEL_LIMIT
from trainchart.check.objects import mapping_at, mappings_at
from trainchart.check.pod_templates import group_of, is_of_kubernetes
from trainchart.helm.rendering import Manifest

STATEFUL_SET_LIMIT = 52
"""The label controller-revision-hash is the name, a dash and ten characters: kubernetes/kubernetes#64023."""
_KUBERNETES = {"StatefulSet": STATEFUL_SET_LIMIT, "CronJob": 52, "Service": DNS_LABEL_LIMIT, "Job": DNS_LABEL_LIMIT}
_ADDED = {
    "apps.kruise.io": {"StatefulSet": STATEFUL_SET_LIMIT},
    "kubeflow.org": {"Notebook": DNS_LABEL_LIMIT},
    # A Service is called after it with -serve-svc; a cluster's name is that of its job or service and six characters.
    "ray.io": {"RayCluster": 53, "RayJob": 47, "RayService": 47},
    "serving.knative.dev": dict.fromkeys(("Configuration", "Revision", "Route", "Service"), DNS_LABEL_LIMIT),
    "trainer.kubeflow.org": {"TrainJob": DNS_LABEL_LIMIT},
}
"""Limits of an object's own name, by group and kind: as the operators' webhooks have them, or what they make by it."""
_ROLES = {
    "JAXJob": "jaxReplicaSpecs",
    "MXJob": "mxReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}


@dataclass(frozen=True)
class MadeName:
    """A name that must not be longer than `limit`, and what it is the name of; empty for the object's own."""

    name: str
    limit: int = DNS_LABEL_LIMIT
    owner: str = ""


def find_made_names(manifest: Manifest) -> Iterator[MadeName]:
    """Yield the names that an object lends to others, each at its longest, its own first."""
    group, kind = group_of(manifest), manifest.kind
    limits: Mapping[str, int] = _KUBERNETES if is_of_kubernetes(manifest) else _ADDED.get(group, {})
    if kind in limits:
        yield MadeName(manifest.name, limits[kind])
    make = _MAKERS.get((group, kind))
    if make is not None:
        yield from make(manifest.name, mapping_at(manifest.document, "spec"))


def _of_kubeflow(field: str) -> Callable[[str, Mapping[str, Any]], Iterator[MadeName]]:
    def make(name: str, spec: Mapping[str, Any]) -> Iterator[MadeName]:
        for role, settings in mapping_at(spec, field).items():
            yield MadeName(f"{name}-{str(role).lower()}-{_last(settings, 'replicas')}", owner="pod and Service")

    return make


def _of_mpi(name: str, spec: Mapping[str, Any]) -> Iterator[MadeName]:
    last = _last(mapping_at(spec, "mpiReplicaSpecs").get("Worker"), "replicas")
    yield MadeName(f"{name}-worker-{last}", owner="pod")


def _of_job_set(name: str, spec: Mapping[str, Any]) -> Iterator[MadeName]:
    for entry in mappings_at(spec, "replicatedJobs"):
        job = f"{name}-{entry.get('name')}-{_last(entry, 'replicas')}"
        yield MadeName(job, owner="Job")
        template = mapping_at(entry, "template", "spec")
        if isinstance(template.get("completions"), int) and template.get("completionMode") != "NonIndexed":
            yield MadeName(f"{job}-{_last(template, 'completions')}-abcde", owner="pod")


def _of_leader_worker_set(name: str, spec: Mapping[str, Any]) -> Iterator[MadeName]:
    yield MadeName(name, STATEFUL_SET_LIMIT)
    if mapping_at(spec, "leaderWorkerTemplate").get("size", 1) != 1:
        yield MadeName(f"{name}-{_last(spec, 'replicas')}", STATEFUL_SET_LIMIT, "StatefulSet")


def _of_volcano(name: str, spec: Mapping[str, Any]) -> Iterator[MadeName]:
    yield MadeName(name)
    for task in mappings_at(spec, "tasks"):
        if task.get("name"):
            yield MadeName(f"{name}-{task['name']}-0", owner="pod")


_MAKERS = {
    **{("kubeflow.org", kind): _of_kubeflow(field) for kind, field in _ROLES.items()},
    ("batch.volcano.sh", "Job"): _of_volcano,
    ("jobset.x-k8s.io", "JobSet"): _of_job_set,
    ("kubeflow.org", "MPIJob"): _of_mpi,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _of_leader_worker_set,
}


def _last(settings: object, field: str) -> int:
    """Return the number of the last of so many, 0 where nothing says how many."""
    count = settings.get(field) if isinstance(settings, Mapping) else None
    return max(count - 1, 0) if isinstance(count, int) else 0
