"""Pods that try out a cluster as the training pods will find it: same image, nodes, user and volumes. Pure.

A Job makes them and owns everything else, so that one deletion removes all; if it is never deleted, it ends
by its deadline and Kubernetes removes it a while later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.snapshot import Object
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.storage import Need
from trainchart_runtime.contract import COMPONENT_LABEL, INSTANCE_LABEL, NAME_LABEL, TRAINING_LABEL

CONTAINER = "probe"
PORTS = (7301, 7302)
"""Open to the probe's own pods; admitted by no policy."""
TRY_SECONDS = 60
"""How long a pod that runs waits for the other one."""
_KEEP_SECONDS = 300
"""A Job that has ended is removed after so long, where doctor itself has been killed."""
_FOLDER = "/trainchart-doctor"
_COPIED = (
    *("serviceAccountName", "automountServiceAccountToken", "securityContext", "nodeSelector", "tolerations"),
    *("imagePullSecrets", "runtimeClassName", "schedulerName", "priorityClassName", "dnsPolicy", "dnsConfig"),
)
"""What a pod of the probe has like those of the training."""
_QUEUE_WORDS = ("queue", "gang", "pod-group", "task-group")
"""In the keys of labels and annotations by which pods wait: the probe must not."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_MOST_NODES = 100
"""More are not named one by one."""
_AMOUNTS = {"cpu": "100m", "memory": "128Mi", "ephemeral-storage": "64Mi"}


@dataclass(frozen=True)
class ProbeVolume:
    """One volume that the probe mounts, in the place of a claim of the release."""

    need: Need
    claim: str
    """The claim that is mounted: the existing one, or one that the probe makes."""
    made: Mapping[str, Any] | None
    sub_path: str


@dataclass(frozen=True)
class Probe:
    """A Job of one or two pods, and what it owns."""

    name: str
    job: Mapping[str, Any]
    owned: tuple[Mapping[str, Any], ...]
    volumes: tuple[ProbeVolume, ...]
    count: int


def make_probe(
    name: str,
    group: PodGroup,
    volumes: Sequence[ProbeVolume],
    images: Iterable[str],
    program: str,
    *,
    nodes: Sequence[str],
    count: int,
    seconds: int,
) -> Probe:
    """Return a probe of `count` pods that are like those of `group` and also pull `images`; it ends in `seconds`.

    `nodes` are those that take pods of the group, whose GPUs the probe does not ask for; none where they are not known.
    """
    labels = {NAME_LABEL: "trainchart-doctor", INSTANCE_LABEL: name}
    metadata = {"name": name, "labels": labels}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": _KEEP_SECONDS,
            "template": {
                "metadata": {
                    "labels": {**_drop_queues(group.labels), **labels, COMPONENT_LABEL: "doctor"},
                    "annotations": _drop_queues(mapping_at(group.pod, "metadata", "annotations")),
                },
                "spec": _make_spec(name, group, volumes, images, nodes),
            },
        },
    }
    settings = _describe_task(name, volumes, count)
    claims = [each.made for each in volumes if each.made is not None]
    owned = (_make_config(metadata, settings, program), _make_service(metadata), _make_policy(metadata), *claims)
    return Probe(name, job, owned, tuple(volumes), count)


def _describe_task(name: str, volumes: Sequence[ProbeVolume], count: int) -> dict[str, Any]:
    """Return the settings of the program that the pods run."""
    return {
        "folder": f".{name}",
        "seconds": TRY_SECONDS,
        "ports": list(PORTS),
        "peers": [{"index": index, "host": f"{name}-{index}.{name}"} for index in range(count)],
        "volumes": [
            {"claim": each.need.claim, "path": _place(number), "writes": each.need.writes}
            for number, each in enumerate(volumes)
        ],
    }


def _make_config(metadata: Mapping[str, Any], settings: Mapping[str, Any], program: str) -> dict[str, Any]:
    data = {"settings.json": json.dumps(settings), "probe.py": program}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _make_service(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Service by which the pods have names."""
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _select(metadata)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _make_policy(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a NetworkPolicy that admits the probe's own pods to the first port alone."""
    own = {"podSelector": {"matchLabels": _select(metadata)}}
    ingress = [{"from": [own], "ports": [{"protocol": "TCP", "port": PORTS[0]}]}]
    spec = {**own, "policyTypes": ["Ingress"], "ingress": ingress}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _select(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {INSTANCE_LABEL: metadata["name"]}


def plan_volumes(name: str, needs: Sequence[Need], groups: Sequence[PodGroup]) -> tuple[ProbeVolume, ...]:
    """Return what a probe of this name mounts for each need: a claim of its own for one that the chart makes."""
    return tuple(
        ProbeVolume(
            need,
            need.claim if need.made is None else f"{name}-{number}",
            None if need.made is None else _make_claim(name, number, need.made),
            _find_sub_path(need.claim, groups),
        )
        for number, need in enumerate(needs)
    )


def own(document: Mapping[str, Any], job: Object) -> dict[str, Any]:
    """Return an object as one that goes when the Job goes."""
    metadata = mapping_at(job, "metadata")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata.get("name"), "uid": metadata.get("uid")}
    return {**document, "metadata": {**mapping_at(document, "metadata"), "ownerReferences": [owner]}}


def _make_spec(
    name: str, group: PodGroup, volumes: Sequence[ProbeVolume], images: Iterable[str], nodes: Sequence[str]
) -> dict[str, Any]:
    training = next(mappings_at(group.spec, "containers"))
    own_image = str(training.get("image"))
    common = {key: training[key] for key in ("imagePullPolicy", "securityContext") if key in training}
    amounts = {"requests": _AMOUNTS, "limits": _AMOUNTS}
    mounts = [
        {
            "name": f"volume-{number}",
            "mountPath": _place(number),
            **({"subPath": each.sub_path} if each.sub_path else {}),
        }
        | ({} if each.need.writes else {"readOnly": True})
        for number, each in enumerate(volumes)
    ]
    probe = {
        "name": CONTAINER,
        "image": own_image,
        **common,
        "command": ["python3", f"{_FOLDER}/program/probe.py", f"{_FOLDER}/program/settings.json"],
        "args": ["/dev/termination-log"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": amounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "program", "mountPath": f"{_FOLDER}/program", "readOnly": True}, *mounts],
    }
    others = [
        {"name": f"image-{number}", "image": image, **common, "command": ["python3", "-c", ""], "resources": amounts}
        for number, image in enumerate(image for image in images if image != own_image)
    ]
    return {
        **{key: group.spec[key] for key in _COPIED if key in group.spec},
        "affinity": _stand_apart(name, group, nodes),
        "subdomain": name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,
        "containers": [probe, *others],
        "volumes": [
            {"name": "program", "configMap": {"name": name}},
            *(
                {"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": each.claim}}
                for number, each in enumerate(volumes)
            ),
        ],
    }


def _stand_apart(name: str, group: PodGroup, nodes: Sequence[str]) -> dict[str, Any]:
    """Return an affinity that lets each pod of the probe have a node of its own among those of the group."""
    term = {"labelSelector": {"matchLabels": {INSTANCE_LABEL: name}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {_REQUIRED: [term]}}
    if 0 < len(nodes) <= _MOST_NODES:
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
        return {**apart, "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
    own = mapping_at(group.spec, "affinity", "nodeAffinity")
    return {**apart, **({"nodeAffinity": own} if own else {})}


def _make_claim(name: str, number: int, made: Object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{name}-{number}", "labels": {INSTANCE_LABEL: name}},
        "spec": dict(mapping_at(made, "spec")),
    }


def _find_sub_path(claim: str, groups: Sequence[PodGroup]) -> str:
    """Return the folder of a claim that the pods mount; "" for its root."""
    for group in groups:
        for volume in mappings_at(group.spec, "volumes"):
            if mapping_at(volume, "persistentVolumeClaim").get("claimName") == claim:
                mounts = (
                    each for one in mappings_at(group.spec, "containers") for each in mappings_at(one, "volumeMounts")
                )
                return next(
                    (str(each.get("subPath") or "") for each in mounts if each.get("name") == volume.get("name")), ""
                )
    return ""


def _drop_queues(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in labels.items()
        if key != TRAINING_LABEL and not any(word in str(key) for word in _QUEUE_WORDS)
    }


def _place(number: int) -> str:
    return f"{_FOLDER}/volumes/{number}"
