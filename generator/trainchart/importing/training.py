"""What the readers of this package agree on: a training as pods by role, whatever tool it comes from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.importing.ledger import Ledger, Place
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER

ROLE_NAMES = {"chief": CHIEF, "master": CHIEF, "worker": WORKER, "ps": PS, "evaluator": EVALUATOR}
"""What the roles are called elsewhere, in lower case, and here."""


@dataclass(frozen=True)
class RolePods:
    """The pods of one role as the input describes them."""

    role: str
    replicas: int
    pod: Mapping[str, Any]
    """The pod's spec in Kubernetes' words."""
    place: Place
    """Where that spec stands in the input."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """One training of the input."""

    kind: str
    """What the input is, for the user: TFJob."""
    name: str
    place: Place
    pods: tuple[RolePods, ...]
    ledger: Ledger
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sections of the model spec that are not about the pods of one role: run, tensorboard, …"""
    container: str = ""
    """Name of the training container; empty means the first one."""
    has_tf_config: bool = True
    """Whether the tool gives programs TF_CONFIG, so that the program is one that reads it."""

    def find(self, role: str) -> RolePods | None:
        """Return the pods of a role, if the input has any."""
        return next((pods for pods in self.pods if pods.role == role), None)
