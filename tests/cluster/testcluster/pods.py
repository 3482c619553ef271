"""Light pods for tests that need no training: a shell or a few lines of Python in an example's image. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .config import REGISTRY_HOST

IMAGE = f"{REGISTRY_HOST}/ml/digits:1.0.0"
"""Holds a shell and Python; both nodes have it."""
SLEEP = ("sleep", "600")
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True)
class LightPod:
    """A pod of one container, `main`, that the Pod Security level `restricted` allows."""

    name: str
    command: Sequence[str] = SLEEP
    image: str = IMAGE
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None
    """Must be there; the scheduler decides as always."""
    claim: str | None = None
    """Mounted at /volume."""
    memory: str = "64Mi"
    limits: Mapping[str, str] = field(default_factory=dict)
    restart_policy: str = "Always"
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the pod."""

    def manifest(self) -> dict[str, Any]:
        """Return the pod as kubectl takes it."""
        container: dict[str, Any] = {
            "name": "main",
            "image": self.image,
            "command": list(self.command),
            "resources": {
                "requests": {"cpu": "10m", "memory": self.memory},
                "limits": {"cpu": "2", "memory": self.memory, **self.limits},
            },
            "securityContext": _RESTRICTED,
        }
        spec: dict[str, Any] = {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": self.restart_policy,
            "containers": [container],
            **self.spec,
        }
        if self.node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": self.node}
        if self.claim:
            container["volumeMounts"] = [{"name": "volume", "mountPath": "/volume"}]
            spec["volumes"] = [{"name": "volume", "persistentVolumeClaim": {"claimName": self.claim}}]
            spec["securityContext"] = {"fsGroup": 1000}
        metadata = {"name": self.name, "labels": dict(self.labels), "annotations": dict(self.annotations)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
