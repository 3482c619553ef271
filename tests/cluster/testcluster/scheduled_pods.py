"""Small pods that the kubelet restarts, as it does a training's; those of `pods.py` run once. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .pods import IMAGE, USER, plan_pod


@dataclass(frozen=True)
class ScheduledPod:
    """A pod of one container that the Pod Security level `restricted` allows."""

    name: str
    command: Sequence[str] = ("sleep", "86400")
    image: str = IMAGE
    """Another one is asked of its registry each time, whether its node has it by now or not."""
    labels: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    """The only one that it fits."""
    claim: str = ""
    """Mounted at /volume."""
    memory_limit: str | None = "64Mi"
    spec: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the pod."""

    def manifest(self) -> dict[str, Any]:
        """Return the pod as kubectl takes it."""
        command = f"exec {shlex.join(self.command)}"
        group = USER if self.claim else None
        pod = plan_pod(self.name, command, node=self.node, claim=self.claim, fs_group=group, labels=self.labels)
        # Not grace 0, which would let the API forget a pod while it still runs.
        pod["spec"] |= {"restartPolicy": "Always", "terminationGracePeriodSeconds": 1, **self.spec}
        container = pod["spec"]["containers"][0]
        container["image"] = self.image
        if self.image != IMAGE:
            container["imagePullPolicy"] = "Always"
        container["resources"]["limits"] = {"memory": self.memory_limit} if self.memory_limit else {}
        return pod
