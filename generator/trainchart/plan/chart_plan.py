"""The ChartPlan: a chart with nothing left to decide. `trainchart plan` prints exactly what is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.errors import Problem
from trainchart.plan.layers import Setting
from trainchart.spec.document import Origin, Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.values import Values


@dataclass(frozen=True)
class ChartPlan:
    """Everything that determines a chart's files: the completed spec, the values, and the origin of each key."""

    spec: ModelSpec
    values: Values
    roles: tuple[str, ...]
    """Roles of the model in reading order."""
    origins: Mapping[Path, Origin]
    """Origin of every key of the completed spec."""
    overridden: Mapping[Path, tuple[Setting, ...]]
    """What weaker layers say of a key, the strongest first."""
    notes: tuple[Problem, ...] = ()
    """What the author should know of, and may well have meant."""

    @property
    def name(self) -> str:
        return self.spec.name


def dump_plan(plan: ChartPlan) -> dict[str, Any]:
    """Return the plan as plain data for people and programs."""
    spec = plan.spec.model_dump(by_alias=True, exclude_none=True)
    values = plan.values.model_dump(by_alias=True)
    shared = values.keys() - {"hyperparameters"}
    return {
        "chart": {key: value for key, value in spec.items() if key not in shared and key != "hyperparameters"},
        "hyperparameters": spec["hyperparameters"],
        "values": values,
    }
