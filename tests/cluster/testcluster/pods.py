"""Small pods for tests of the cluster itself, as data: pure. Trained models bring their own, from charts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .config import REGISTRY_HOST

IMAGE = f"{REGISTRY_HOST}/ml/mnist:1.0.0"
"""Any image with a shell and Python that every node holds."""
USER = 10001
MANAGER = "trainchart-tests"


def plan_namespace(name: str, **labels: str) -> dict[str, Any]:
    """Plan a namespace of the tests' own, by whose label a user finds what a killed run has left in his cluster."""
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": MANAGER, **labels}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def plan_pod(
    name: str,
    command: str,
    *,
    node: str = "",
    claim: str = "",
    fs_group: int | None = None,
    is_read_only: bool = False,
    labels: Mapping[str, str] | None = None,
    ports: Mapping[str, int] | None = None,
    memory_limit: str = "256Mi",
) -> dict[str, Any]:
    """Plan a pod that runs a shell command once, on a node if one is named, as Pod Security `restricted` wants it.

    The claim, if any, is mounted at /volume. Ports are named; the first one is probed.
    """
    container: dict[str, Any] = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", command],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": memory_limit}},
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if node:
        # Not nodeName: a kubelet that meets a claim before it is bound looks again only 10 to 15 seconds later.
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if fs_group is not None:
        spec["securityContext"]["fsGroup"] = fs_group
    if claim:
        container["volumeMounts"] = [{"name": "volume", "mountPath": "/volume", "readOnly": is_read_only}]
        spec["volumes"] = [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}]
    if ports:
        container["ports"] = [{"name": port, "containerPort": number} for port, number in ports.items()]
        container["readinessProbe"] = {"tcpSocket": {"port": next(iter(ports))}, "periodSeconds": 1}
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def plan_claim(name: str, storage_class: str, access_mode: str) -> dict[str, Any]:
    """Plan a claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": [access_mode],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def dump_objects(*objects: Mapping[str, Any]) -> str:
    """Dump objects as what `kubectl apply -f -` reads."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
