"""Finds in rendered manifests what a local run starts and reads: training StatefulSets, data, pods.

Pure; knows the shape of Kubernetes objects and nothing of folders or processes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.helm.rendering import Manifest
from trainchart.local.notices import Notices
from trainchart_runtime import contract
from trainchart_runtime.cluster import ROLES

DEFAULT_STOP_GRACE_SECONDS = 30
"""Kubernetes' default of terminationGracePeriodSeconds."""


@dataclass(frozen=True)
class TrainingSet:
    """One StatefulSet whose pods train."""

    name: str
    role: str
    service: str
    replicas: int
    chart: str
    """Name and version of the chart, as its label says; empty without one."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    """Those of the pod template over those of the set."""
    pod_annotations: Mapping[str, str]
    """Those of the pod template alone, which are all that a pod has."""
    pod_spec: Mapping[str, Any]
    container: Mapping[str, Any]
    claim_templates: tuple[str, ...]
    source: str

    @property
    def stop_grace_seconds(self) -> int:
        return int(self.pod_spec.get("terminationGracePeriodSeconds", DEFAULT_STOP_GRACE_SECONDS))


@dataclass(frozen=True)
class PodIdentity:
    """What the downward API knows about a pod before it is scheduled."""

    name: str
    namespace: str
    role: str
    ordinal: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    service_account: str

    @property
    def label(self) -> str:
        """The short name people use for this pod: `worker-1`."""
        return f"{self.role}-{self.ordinal}"


@dataclass(frozen=True)
class RenderedData:
    """The contents of all rendered ConfigMaps and Secrets, and the names of all rendered claims."""

    config_maps: Mapping[str, Mapping[str, bytes]]
    secrets: Mapping[str, Mapping[str, bytes]]
    claims: frozenset[str]


def find_training_sets(manifests: Sequence[Manifest], notices: Notices) -> tuple[TrainingSet, ...]:
    """Return the StatefulSets labelled with a training role, in the order of ROLES."""
    found = []
    for manifest in manifests:
        role = _find_role(manifest.document)
        if manifest.kind != "StatefulSet" or role not in ROLES:
            continue
        training_set = _read_training_set(manifest, role, notices)
        if training_set is not None:
            found.append(training_set)
    return tuple(sorted(found, key=lambda item: ROLES.index(item.role)))


def _find_role(document: Mapping[str, Any]) -> str:
    """Return the role label of an object or of its pods."""
    template = (document.get("spec") or {}).get("template") or {}
    for part in (document, template):
        labels = (part.get("metadata") or {}).get("labels") or {}
        if contract.COMPONENT_LABEL in labels:
            return str(labels[contract.COMPONENT_LABEL])
    return ""


def _read_training_set(manifest: Manifest, role: str, notices: Notices) -> TrainingSet | None:
    metadata = manifest.document.get("metadata") or {}
    spec = manifest.document.get("spec") or {}
    template = spec.get("template") or {}
    template_metadata = template.get("metadata") or {}
    pod_spec = template.get("spec") or {}
    containers = pod_spec.get("containers") or []
    container = next((item for item in containers if item.get("name") == contract.TRAINING_CONTAINER), None)
    where = f"{manifest.source}: StatefulSet {manifest.name}"
    if container is None:
        notices.refuse(
            f"no container is named {contract.TRAINING_CONTAINER!r}",
            where=where,
            hint="the container that runs the launcher must have this name",
        )
        return None
    others = [str(item.get("name")) for item in containers if item is not container]
    others += [str(item.get("name")) for item in pod_spec.get("initContainers") or []]
    # Its work is done here already: a local run has a launcher of its own.
    others = [name for name in others if name != contract.LAUNCHER_CONTAINER]
    if others:
        notices.warn(f"{role}: only the container {container['name']} runs here, not {', '.join(others)}")
    labels = template_metadata.get("labels") or {}
    annotations = {**(metadata.get("annotations") or {}), **(template_metadata.get("annotations") or {})}
    replicas = spec.get("replicas", annotations.get(contract.REPLICAS_ANNOTATION, 1))
    return TrainingSet(
        name=manifest.name,
        role=role,
        service=str(spec.get("serviceName", "")),
        replicas=int(replicas),
        chart=str({**labels, **(metadata.get("labels") or {})}.get(contract.CHART_LABEL, "")),
        labels=labels,
        annotations=annotations,
        pod_annotations=template_metadata.get("annotations") or {},
        pod_spec=pod_spec,
        container=container,
        claim_templates=tuple(
            str((item.get("metadata") or {}).get("name")) for item in spec.get("volumeClaimTemplates") or []
        ),
        source=manifest.source,
    )


def find_rendered_data(manifests: Sequence[Manifest]) -> RenderedData:
    """Return what ConfigMaps and Secrets hold, decoded, and which claims the chart makes."""
    config_maps: dict[str, Mapping[str, bytes]] = {}
    secrets: dict[str, Mapping[str, bytes]] = {}
    for manifest in manifests:
        document = manifest.document
        if manifest.kind == "ConfigMap":
            config_maps[manifest.name] = _encoded(document.get("data")) | _decoded(document.get("binaryData"))
        elif manifest.kind == "Secret":
            secrets[manifest.name] = _decoded(document.get("data")) | _encoded(document.get("stringData"))
    claims = frozenset(item.name for item in manifests if item.kind == "PersistentVolumeClaim")
    return RenderedData(config_maps, secrets, claims)


def identify_pods(training_set: TrainingSet, namespace: str) -> tuple[PodIdentity, ...]:
    """Return the pods that the StatefulSet controller would make, with the labels that it would add."""
    return tuple(
        PodIdentity(
            name=f"{training_set.name}-{ordinal}",
            namespace=namespace,
            role=training_set.role,
            ordinal=ordinal,
            labels={
                **training_set.labels,
                contract.POD_INDEX_LABEL: str(ordinal),
                contract.POD_NAME_LABEL: f"{training_set.name}-{ordinal}",
            },
            annotations=training_set.pod_annotations,
            service_account=str(training_set.pod_spec.get("serviceAccountName", "default")),
        )
        for ordinal in range(training_set.replicas)
    )


def image_repository(image: str) -> str:
    """Return an image reference without tag and digest."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return folder + slash + last.partition(":")[0]


def read_pod_field(path: str, pod: PodIdentity) -> str | None:
    """Return the value of a downward API field, or None when only a cluster knows it."""
    for name, table in (("labels", pod.labels), ("annotations", pod.annotations)):
        prefix = f"metadata.{name}['"
        if path.startswith(prefix) and path.endswith("']"):
            return str(table.get(path[len(prefix) : -2], ""))
        if path == f"metadata.{name}":
            return "\n".join(f'{key}="{value}"' for key, value in sorted(table.items()))
    return {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": f"local-{pod.namespace}-{pod.name}",
        "spec.nodeName": "localhost",
        "spec.serviceAccountName": pod.service_account,
        "status.podIP": "127.0.0.1",
        "status.podIPs": "127.0.0.1",
        "status.hostIP": "127.0.0.1",
        "status.hostIPs": "127.0.0.1",
    }.get(path)


def _encoded(table: Mapping[str, Any] | None) -> dict[str, bytes]:
    return {key: str(value).encode() for key, value in (table or {}).items()}


def _decoded(table: Mapping[str, Any] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(str(value)) for key, value in (table or {}).items()}
