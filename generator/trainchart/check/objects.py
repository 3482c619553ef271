"""Finding one's way in rendered Kubernetes objects: pod templates, containers, replicas, labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.rendering import Manifest

REPLICAS_ANNOTATION = "trainchart/replicas"
"""The wanted number of pods where spec.replicas belongs to the run controller."""
_TEMPLATE_PATHS: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"), ("spec", "template")),
}


@dataclass(frozen=True)
class Container:
    """A container of a pod and where it stands in the object."""

    where: str
    document: Mapping[str, Any]


def mapping_at(document: object, *path: str) -> Mapping[str, Any]:
    """Return the mapping at `path`, an empty one where there is none."""
    for part in path:
        document = document.get(part) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def list_at(document: object, *path: str) -> list[Any]:
    """Return the list at `path`, an empty one where there is none."""
    found = mapping_at(document, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def pod_template(manifest: Manifest) -> Mapping[str, Any] | None:
    """Return the metadata and spec of the pods that `manifest` makes; None for kinds without pods."""
    path = _TEMPLATE_PATHS.get(manifest.kind)
    return None if path is None else mapping_at(manifest.document, *path)


def pod_containers(manifest: Manifest) -> Iterator[Container]:
    """Yield all containers of the pods that `manifest` makes, init containers included."""
    template = pod_template(manifest)
    for field in ("initContainers", "containers"):
        for container in list_at(template, "spec", field) if template else ():
            if isinstance(container, Mapping):
                yield Container(f"container {container.get('name', '?')}", container)


def wanted_replicas(stateful_set: Manifest) -> int | None:
    """Return how many pods a StatefulSet is to have; None where neither field nor annotation says so."""
    found = mapping_at(stateful_set.document, "spec").get("replicas")
    if found is None:
        found = mapping_at(stateful_set.document, "metadata", "annotations").get(REPLICAS_ANNOTATION)
    try:
        return None if found is None else int(found)
    except (TypeError, ValueError):
        return None
