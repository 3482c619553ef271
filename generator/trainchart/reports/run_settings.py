"""What a run was asked for, as far as it is known: runs that end differently mostly differ in one of these. Pure.

Local runs keep it in their record; of a release it is read from the StatefulSets and the ConfigMap of hyperparameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trainchart.quantities import may_be_gpu
from trainchart_runtime.contract import TRAINING_CONTAINER


@dataclass(frozen=True)
class RoleSettings:
    """What the pods of one role are, by the names that the values of a chart have for it."""

    replicas: int
    image: str = ""
    cpu: str = ""
    memory: str = ""
    gpus: str = ""
    """Number and resource of each kind, such as "2 nvidia.com/gpu"; empty for none."""


@dataclass(frozen=True)
class RunSettings:
    """The settings of one run."""

    strategy: str = ""
    """Empty where it is not known."""
    roles: Mapping[str, RoleSettings] = field(default_factory=dict)
    """Empty where they are not known."""
    hyperparameters: Mapping[str, Any] | None = None
    """None where they are not known; one without a value is left to the program."""
    values: Mapping[str, Any] | None = None
    """What the user set, as in a values file; None where it is not known."""

    @property
    def images(self) -> tuple[str, ...]:
        """The images of its roles, each once."""
        return tuple(dict.fromkeys(each.image for each in self.roles.values() if each.image))

    @property
    def last_step(self) -> int | None:
        """The step that ends the training, where a hyperparameter says it."""
        return find_last_step(self.hyperparameters or {})


_LAST_STEP_NAMES = ("maxSteps", "trainSteps", "trainingSteps", "totalSteps", "numSteps", "steps")
"""Hyperparameters that say how many steps a training takes: the training library's, and those of many scripts."""


def find_last_step(hyperparameters: Mapping[str, Any]) -> int | None:
    """Return the step that ends a training, where one of its hyperparameters says it."""
    found = (hyperparameters.get(name) for name in _LAST_STEP_NAMES)
    whole = (value for value in found if isinstance(value, int) and not isinstance(value, bool))
    return next((value for value in whole if value > 0), None)


UNKNOWN_SETTINGS = RunSettings()


def read_role(replicas: int, pod_spec: Mapping[str, Any]) -> RoleSettings:
    """Return the settings of a role from the pod that its StatefulSet makes; what is odd in it becomes empty."""
    containers = pod_spec.get("containers")
    found = (each for each in containers if isinstance(each, Mapping)) if isinstance(containers, list) else iter(())
    training = next((each for each in found if each.get("name") == TRAINING_CONTAINER), {})
    resources = training.get("resources")
    requests, limits = (
        each if isinstance(each, Mapping) else {}
        for each in (
            (resources.get("requests"), resources.get("limits")) if isinstance(resources, Mapping) else (None, None)
        )
    )
    gpus = (f"{number} {name}" for name, number in limits.items() if may_be_gpu(str(name)))
    cpu, memory = (str(requests.get(name, limits.get(name, ""))) for name in ("cpu", "memory"))
    return RoleSettings(replicas, str(training.get("image") or ""), cpu, memory, ", ".join(gpus))


def describe_settings(settings: RunSettings) -> dict[str, Any]:
    """Return the settings as a JSON document; what is not known is null."""
    return {
        "strategy": settings.strategy or None,
        "roles": {role: asdict(each) for role, each in settings.roles.items()} or None,
        "hyperparameters": None if settings.hyperparameters is None else dict(settings.hyperparameters),
        "values": None if settings.values is None else dict(settings.values),
    }


def parse_settings(document: Mapping[str, Any]) -> RunSettings:
    """Return what `describe_settings` has described; what has a wrong type is not known."""
    roles, hyperparameters, values = (document.get(name) for name in ("roles", "hyperparameters", "values"))
    return RunSettings(
        strategy=str(document.get("strategy") or ""),
        roles={role: parsed for role, each in roles.items() if (parsed := _parse_role(each))}
        if isinstance(roles, Mapping)
        else {},
        hyperparameters=hyperparameters if isinstance(hyperparameters, Mapping) else None,
        values=values if isinstance(values, Mapping) else None,
    )


def _parse_role(document: Any) -> RoleSettings | None:
    replicas = document.get("replicas") if isinstance(document, Mapping) else None
    if not isinstance(replicas, int):
        return None
    return RoleSettings(replicas, *(str(document.get(name) or "") for name in ("image", "cpu", "memory", "gpus")))


def describe_hyperparameters(values: Mapping[str, Any]) -> str:
    """Return "name value, …", each value as `--set-json` takes it, or `unset`."""
    return ", ".join(
        f"{name} {'unset' if value is None else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
