"""Finding one's way in rendered Kubernetes objects: pod templates, containers, replicas, labels, selectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.check.pod_templates import PodTemplate, is_of_kubernetes, kubernetes_kind, pod_templates
from trainchart.helm.rendering import Manifest, Rendering
from trainchart_runtime import contract

EXTRA_MANIFESTS = "templates/extra-manifests.yaml"
"""Where a chart of ours renders the objects that its user adds."""
HOOK_ANNOTATION = "helm.sh/hook"


@dataclass(frozen=True)
class Container:
    """A container of a pod and where it stands in the object."""

    where: str
    document: Mapping[str, Any]
    is_init: bool = False


@dataclass(frozen=True)
class Pods:
    """The pods that one object makes."""

    manifest: Manifest
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    spec: Mapping[str, Any]
    containers: tuple[Container, ...]
    replicas: int | None
    """How many; None where that depends on the cluster or on another field's owner."""
    namespace: str
    where: str = ""
    """The path of the pod template in an object of an added kind, which may have several."""

    @property
    def called(self) -> str:
        """What findings call these pods."""
        return f"{called(self.manifest)}: {self.where}" if self.where else called(self.manifest)


def mapping_at(document: object, *path: str) -> Mapping[str, Any]:
    """Return the mapping at `path`, an empty one where there is none."""
    for part in path:
        document = document.get(part) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def list_at(document: object, *path: str) -> list[Any]:
    """Return the list at `path`, an empty one where there is none."""
    found = mapping_at(document, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def mappings_at(document: object, *path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of the list at `path` that are mappings."""
    return (entry for entry in list_at(document, *path) if isinstance(entry, Mapping))


def called(manifest: Manifest) -> str:
    """Return what findings call an object."""
    return f"{manifest.kind or 'object'} {manifest.name or '(unnamed)'}"


def namespace_of(manifest: Manifest, rendering: Rendering) -> str:
    """Return the namespace that an object of a namespaced kind lands in: its own, or else the release's."""
    return str(mapping_at(manifest.document, "metadata").get("namespace") or rendering.namespace)


def made_namespaces(rendering: Rendering) -> frozenset[str]:
    """Return the namespaces that a release makes itself, for the pods of others."""
    return frozenset(manifest.name for manifest in rendering.manifests if kubernetes_kind(manifest) == "Namespace")


def whereabouts(rendering: Rendering) -> str:
    """Say where objects were looked for: plain manifests belong to no release."""
    return "of the release" if rendering.release else "of these manifests"


def containers_of(template: Mapping[str, Any]) -> Iterator[Container]:
    """Yield all containers of a pod template, init containers included."""
    for field in ("initContainers", "containers"):
        for container in mappings_at(template, "spec", field):
            yield Container(f"container {container.get('name', '?')}", container, field == "initContainers")


def find_pods(rendering: Rendering) -> Iterator[Pods]:
    """Yield the pods of every object that makes some, hooks included."""
    for manifest in rendering.manifests:
        yield from pods_of(manifest, namespace_of(manifest, rendering))


def pods_of(manifest: Manifest, namespace: str = "") -> Iterator[Pods]:
    """Yield the pods that one object makes: one entry for each pod template."""
    for template in pod_templates(manifest):
        yield Pods(
            manifest,
            mapping_at(template.content, "metadata", "labels"),
            mapping_at(template.content, "metadata", "annotations"),
            mapping_at(template.content, "spec"),
            tuple(containers_of(template.content)),
            _pod_count(manifest, template),
            namespace,
            "" if is_of_kubernetes(manifest) else template.where,
        )


def find_images(rendering: Rendering) -> tuple[str, ...]:
    """Return all images that the pods of a rendering run or mount, hooks' included, as the manifests write them."""
    found: set[str] = set()
    for pods in find_pods(rendering):
        found |= {str(container.document["image"]) for container in pods.containers if container.document.get("image")}
        mounted = (mapping_at(volume, "image").get("reference") for volume in mappings_at(pods.spec, "volumes"))
        found |= {str(reference) for reference in mounted if reference}
    return tuple(sorted(found))


def is_hook(manifest: Manifest) -> bool:
    """Tell whether Helm treats the object as a hook, which comes and goes."""
    return HOOK_ANNOTATION in mapping_at(manifest.document, "metadata", "annotations")


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Tell whether a label selector (matchLabels and matchExpressions) matches `labels`; an empty one does."""
    plain = mapping_at(selector, "matchLabels")
    return plain.items() <= labels.items() and all(
        _fits(expression, labels) for expression in mappings_at(selector, "matchExpressions")
    )


def wanted_replicas(stateful_set: Manifest) -> int | None:
    """Return how many pods a StatefulSet is to have; None where neither field nor annotation says so."""
    found = mapping_at(stateful_set.document, "spec").get("replicas")
    if found is None:
        found = mapping_at(stateful_set.document, "metadata", "annotations").get(contract.REPLICAS_ANNOTATION)
    try:
        return None if found is None else int(found)
    except (TypeError, ValueError):
        return None


def _pod_count(manifest: Manifest, template: PodTemplate) -> int | None:
    kind = kubernetes_kind(manifest)
    if kind in ("Pod", "CronJob"):
        return 1
    if kind in ("DaemonSet", "PodTemplate"):
        return None
    if kind in ("Job", ""):
        found = template.holder.get("parallelism" if kind else "replicas", 1)
        return found if isinstance(found, int) else None
    found = wanted_replicas(manifest)
    # Without the field there is one pod; a StatefulSet of ours says it in the annotation.
    return 1 if found is None and "replicas" not in mapping_at(manifest.document, "spec") else found


def _fits(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, operator, values = str(expression.get("key")), expression.get("operator"), expression.get("values") or []
    if operator in ("In", "NotIn"):
        return (key in labels and labels[key] in values) is (operator == "In")
    return (key in labels) is (operator == "Exists")
