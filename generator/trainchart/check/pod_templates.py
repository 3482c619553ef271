"""Where objects hold pod templates, as data: kinds of Kubernetes, and well-known kinds that are added to clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.helm.rendering import Manifest

_OWN: Mapping[str, str] = {
    "Pod": "",
    "PodTemplate": "template",
    "CronJob": "spec.jobTemplate.spec.template",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), "spec.template"
    ),
}
_RAY_CLUSTER = ("headGroupSpec.template", "workerGroupSpecs.*.template")
_RUNTIME = ("spec.template.spec.replicatedJobs.*.template.spec.template",)
_KUBEFLOW_ROLES = {
    "TFJob": "tfReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "MXJob": "mxReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
_ROLES = {kind: (f"spec.{field}.*.template",) for kind, field in _KUBEFLOW_ROLES.items()}
_ADDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "kubeflow.org": {**_ROLES, "Notebook": ("spec.template",)},
    "training.kubedl.io": _ROLES,
    "xdl.kubedl.io": {"XDLJob": ("spec.xdlReplicaSpecs.*.template",)},
    "elastic.iml.github.io": {"ElasticJob": ("spec.replicaSpecs.*.template",)},
    "trainer.kubeflow.org": {"TrainingRuntime": _RUNTIME, "ClusterTrainingRuntime": _RUNTIME},
    "jobset.x-k8s.io": {"JobSet": ("spec.replicatedJobs.*.template.spec.template",)},
    "leaderworkerset.x-k8s.io": {
        "LeaderWorkerSet": ("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate")
    },
    "kueue.x-k8s.io": {"Workload": ("spec.podSets.*.template",)},
    "batch.volcano.sh": {
        "Job": ("spec.tasks.*.template",),
        "JobTemplate": ("spec.tasks.*.template",),
        "CronJob": ("spec.jobTemplate.spec.tasks.*.template",),
    },
    "ray.io": {
        "RayCluster": tuple(f"spec.{path}" for path in _RAY_CLUSTER),
        "RayJob": ("spec.submitterPodTemplate", *(f"spec.rayClusterSpec.{path}" for path in _RAY_CLUSTER)),
        "RayService": tuple(f"spec.rayClusterConfig.{path}" for path in _RAY_CLUSTER),
    },
    "argoproj.io": {"Rollout": ("spec.template",)},
    "apps.kruise.io": {
        **dict.fromkeys(("BroadcastJob", "CloneSet", "DaemonSet", "StatefulSet"), ("spec.template",)),
        "AdvancedCronJob": (
            "spec.template.jobTemplate.spec.template",
            "spec.template.broadcastJobTemplate.spec.template",
        ),
    },
    "apps.openshift.io": {"DeploymentConfig": ("spec.template",)},
    "keda.sh": {"ScaledJob": ("spec.jobTargetRef.template",)},
    "serving.knative.dev": {"Service": ("spec.template",), "Configuration": ("spec.template",)},
}
"""By group and kind. A * stands for every entry of a list or map. Only what is a whole pod template is here: of others,
such as the podTemplate of an operator that adds the image itself, too much is missing that would be reported."""
_OF_PEERS = (
    "batch.volcano.sh",
    "elastic.iml.github.io",
    "jobset.x-k8s.io",
    "kubeflow.org",
    "leaderworkerset.x-k8s.io",
    "ray.io",
    "trainer.kubeflow.org",
    "training.kubedl.io",
    "xdl.kubedl.io",
)
"""Groups whose operators tell pods the DNS names of their peers."""
_WITH_OWN_FIELDS = ("serving.knative.dev",)
"""Their pod templates have fields that pods do not have, and leave out some that pods need."""


@dataclass(frozen=True)
class PodTemplate:
    """A pod template, its path in the object, and what holds it: a spec, or what an added kind has for each role."""

    where: str
    """Empty where the object itself is the pod."""
    content: Mapping[str, Any]
    holder: Mapping[str, Any]
    is_strict: bool = True
    """It has the fields of Kubernetes and no others."""


def group_of(manifest: Manifest) -> str:
    """Return the API group of an object, empty for Kubernetes' core."""
    return str(manifest.document.get("apiVersion", "")).rpartition("/")[0]


def is_of_kubernetes(manifest: Manifest) -> bool:
    """Tell whether the kind's group is one of Kubernetes: kinds of other groups may have the same name."""
    group = group_of(manifest)
    return "." not in group or group.endswith(".k8s.io")


def kubernetes_kind(manifest: Manifest) -> str:
    """Return the object's kind; empty for kinds that are not of Kubernetes, such as a Job of Volcano."""
    return manifest.kind if is_of_kubernetes(manifest) else ""


def names_peers(manifest: Manifest) -> bool:
    """Tell whether an operator gives the object's pods the DNS names of their peers."""
    return group_of(manifest) in _OF_PEERS and manifest.kind != "Notebook"


def pod_templates(manifest: Manifest) -> tuple[PodTemplate, ...]:
    """Return the templates of the pods that `manifest` makes; none for kinds without pods.

    A kind of Kubernetes that makes pods has exactly one, empty where the object lacks it.
    """
    if is_of_kubernetes(manifest):
        path = _OWN.get(manifest.kind)
        if path is None:
            return ()
        found = list(_find(manifest.document, path.split(".") if path else [], "", {}))
        return tuple(found) or (PodTemplate(path, {}, {}),)
    group = group_of(manifest)
    is_strict = group not in _WITH_OWN_FIELDS
    return tuple(
        PodTemplate(found.where, found.content, found.holder, is_strict)
        for path in _ADDED.get(group, {}).get(manifest.kind, ())
        for found in _find(manifest.document, path.split("."), "", {})
    )


def _find(node: Any, path: list[str], where: str, holder: Mapping[str, Any]) -> Iterator[PodTemplate]:
    if not path:
        if isinstance(node, Mapping):
            yield PodTemplate(where, node, holder)
    elif path[0] == "*" and isinstance(node, list):
        for number, entry in enumerate(node):
            yield from _find(entry, path[1:], f"{where}[{number}]", holder)
    elif isinstance(node, Mapping):
        for key in node if path[0] == "*" else (path[0],):
            if key in node:
                yield from _find(node[key], path[1:], f"{where}.{key}".lstrip("."), node)
