"""The pod by which `trainchart checkpoints` reads the claim of a release, as the objects that make it. Pure.

A Job makes the pod and owns the ConfigMap with its program, so that one deletion removes all. If it is never deleted,
it ends by its deadline, and Kubernetes removes it a while later.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.checkpoints.release_volume import ReleaseVolume
from trainchart.cluster.snapshot import Object, label, name_of
from trainchart_runtime.contract import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    NAME_LABEL,
    TRAINING_CONTAINER,
    TRAINING_LABEL,
)
from trainchart_runtime.run.judge import list_names

CONTAINER = "checkpoints"
PROGRAM = "/trainchart-checkpoints/program/checkpoints.pyz"
FOLDER = "/trainchart-checkpoints/volume"
"""Where the volume is mounted; in all that is shown, the claim's name stands instead."""
PYTHON = ("python3", "-I")
_SETTINGS = "settings.json"
_KEEP_SECONDS = 300
"""A Job that has ended is removed after so long, where the command itself has been killed."""
_COPIED = (
    *("serviceAccountName", "securityContext", "nodeSelector", "tolerations", "imagePullSecrets"),
    *("runtimeClassName", "schedulerName", "priorityClassName"),
)
"""What the pod has like those of the training."""
_QUEUE_WORDS = ("queue", "gang", "pod-group", "task-group")
"""In the keys of labels and annotations by which pods wait: the helper must not."""
_REQUESTS = {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "64Mi"}
_LIMITS = {**_REQUESTS, "cpu": "1"}
_DEFAULT_USER = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "fsGroup": 1000,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Of a pod whose release is uninstalled: the charts' own defaults."""
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
}


_NAME = "trainchart-checkpoints"


@dataclass(frozen=True)
class HelperPod:
    """What a helper pod is to do, and where."""

    name: str
    volume: ReleaseVolume
    image: str
    node: str
    """The only node on which it can mount the volume; "" where any will do."""
    writes: bool
    seconds: int
    """When Kubernetes ends it."""


def make_job(helper: HelperPod) -> dict[str, Any]:
    """Return the Job of a helper pod."""
    volume = helper.volume
    labels = {NAME_LABEL: _NAME, INSTANCE_LABEL: helper.name}
    about = {"trainchart/release": volume.release, "trainchart/claim": volume.claim}
    template = volume.template
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": helper.name, "labels": labels, "annotations": about},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": helper.seconds,
            "ttlSecondsAfterFinished": _KEEP_SECONDS,
            "template": {
                "metadata": {
                    "labels": {
                        **_drop_queues(mapping_at(template, "metadata", "labels")),
                        **labels,
                        COMPONENT_LABEL: "checkpoints",
                    },
                    "annotations": {**_drop_queues(mapping_at(template, "metadata", "annotations")), **about},
                },
                "spec": _make_spec(helper),
            },
        },
    }


def make_config(
    helper: HelperPod, job: Mapping[str, Any], program: bytes, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the ConfigMap with the program of a helper pod, which goes when the Job goes."""
    uid = mapping_at(job, "metadata").get("uid")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": helper.name, "uid": uid}
    labels = {NAME_LABEL: _NAME, INSTANCE_LABEL: helper.name}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": helper.name, "labels": labels, "ownerReferences": [owner]},
        "binaryData": {PROGRAM.rpartition("/")[2]: base64.b64encode(program).decode()},
        "data": {_SETTINGS: json.dumps(settings)},
    }


def _make_spec(helper: HelperPod) -> dict[str, Any]:
    volume = helper.volume
    spec = mapping_at(volume.template, "spec")
    training = next((each for each in mappings_at(spec, "containers") if each.get("name") == TRAINING_CONTAINER), {})
    place = PROGRAM.rpartition("/")[0]
    mount = {"name": "volume", "mountPath": FOLDER, "readOnly": not helper.writes}
    container = {
        "name": CONTAINER,
        "image": helper.image,
        "imagePullPolicy": training.get("imagePullPolicy", "IfNotPresent"),
        "command": [*PYTHON, PROGRAM, f"{place}/{_SETTINGS}"],
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
        "resources": {"requests": _REQUESTS, "limits": _LIMITS},
        "securityContext": training.get("securityContext", _RESTRICTED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "program", "mountPath": place, "readOnly": True},
            {**mount, **({"subPath": volume.sub_path} if volume.sub_path else {})},
        ],
    }
    return {
        **({key: spec[key] for key in _COPIED if key in spec} if spec else {"securityContext": _DEFAULT_USER}),
        **_choose_place(helper, spec),
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [
            {"name": "program", "configMap": {"name": helper.name}},
            {"name": "volume", "persistentVolumeClaim": {"claimName": volume.claim}},
        ],
    }


def _choose_place(helper: HelperPod, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the affinity of the pod: the node that has the volume, or else the nodes of the training."""
    if helper.node:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [helper.node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return {"affinity": {"nodeAffinity": required}}
    own = mapping_at(spec, "affinity", "nodeAffinity")
    return {"affinity": {"nodeAffinity": dict(own)}} if own else {}


def _drop_queues(labels: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in labels.items()
        if key != TRAINING_LABEL and not any(word in str(key) for word in _QUEUE_WORDS)
    }


def advise_on_writers(writers: Sequence[str], pods: Iterable[Object]) -> str:
    """Return what to do about pods that may write to the checkpoints: a helper pod belongs to no release."""
    labels = {name_of(pod): label(pod, NAME_LABEL) for pod in pods}
    helpers = [name for name in writers if labels.get(name) == _NAME]
    others = [name for name in writers if name not in helpers]
    if not helpers:
        return "wait until they have ended, or uninstall their release"
    is_one = len(writers) == 1
    wait = f"wait until {'it has' if is_one else 'they have'} ended"
    end = f", or uninstall the release of {list_names(others)}" if others else ""
    work = "works" if len(helpers) == 1 else "work"
    return f"{wait}{end}: {list_names(helpers)} {work} for another trainchart checkpoints command"
