"""What the README template shows of values and hyperparameters, and how a hyperparameter becomes JSON in a template."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from trainchart.plan.chart_plan import ChartPlan
from trainchart.render.value_tree import ValueNode, walk_leaves
from trainchart.spec.model import Hyperparameter

_BOUNDS = {"minimum": "≥", "exclusive_minimum": ">", "maximum": "≤", "exclusive_maximum": "<"}


@dataclass(frozen=True)
class DescribedHyperparameter:
    name: str
    default: str
    """As Markdown; empty where the program decides."""
    description: str
    type_text: str
    """Type and bounds in words."""
    set_argument: str
    """What --set takes to give the default, quoted for a shell; empty where there is none."""
    expression: str
    """Go template pipeline that prints the value as JSON."""
    is_optional: bool
    """Whether it has no value unless an experiment sets one."""


@dataclass(frozen=True)
class ValueRow:
    """One row of the README's table: all roles share one, and so do all volumes."""

    key: str
    default: str
    description: str


def describe_hyperparameters(plan: ChartPlan) -> list[DescribedHyperparameter]:
    return [
        DescribedHyperparameter(
            name=name,
            default="" if parameter.default is None else f"`{cell(str(_plain(parameter.default)))}`",
            description=cell(parameter.description),
            type_text=cell(_type_text(parameter)),
            set_argument=_set_argument(name, parameter.default),
            expression=_expression(plan.name, name, parameter),
            is_optional=parameter.default is None,
        )
        for name, parameter in plan.spec.hyperparameters.items()
    ]


def list_value_rows(plan: ChartPlan, values: tuple[ValueNode, ...]) -> list[ValueRow]:
    """Return a row for every key of values.yaml but the hyperparameters, which have a table of their own."""
    groups: dict[str, list[ValueNode]] = {}
    for leaf in walk_leaves(values):
        if leaf.path[0] != "hyperparameters":
            groups.setdefault(_group_key(leaf.path), []).append(leaf)
    roles = len(plan.roles)
    return [
        ValueRow(
            key,
            cell(_defaults(leaves, is_everywhere=len(leaves) == roles or leaves[0].path[0] != "roles")),
            cell(leaves[0].description),
        )
        for key, leaves in groups.items()
    ]


def _group_key(path: tuple[str, ...]) -> str:
    if path[0] in ("roles", "volumes") and len(path) > 2:
        return ".".join((path[0], "*", *path[2:]))
    return ".".join(path)


def _defaults(leaves: list[ValueNode], *, is_everywhere: bool) -> str:
    """Return the default, or the default of each entry where they differ."""
    shown = {leaf.path[1]: f"`{json.dumps(leaf.value, ensure_ascii=False)}`" for leaf in leaves if len(leaf.path) > 1}
    if is_everywhere and (len(leaves) == 1 or len(set(shown.values())) == 1):
        return f"`{json.dumps(leaves[0].value, ensure_ascii=False)}`"
    return ", ".join(f"{entry}: {default}" for entry, default in shown.items())


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool) else value


def _set_argument(name: str, default: Any) -> str:
    return "" if default is None else shlex.quote(f"hyperparameters.{name}={_plain(default)}")


def cell(text: str) -> str:
    """Return `text` as it may stand in a Markdown table."""
    return text.replace("|", "\\|")


def _type_text(parameter: Hyperparameter) -> str:
    bounds = [
        f"{sign} {getattr(parameter, name)}" for name, sign in _BOUNDS.items() if getattr(parameter, name) is not None
    ]
    if parameter.enum:
        bounds.append("one of " + ", ".join(parameter.enum))
    return " ".join([parameter.type, ", ".join(bounds)]).strip()


def _expression(chart: str, name: str, parameter: Hyperparameter) -> str:
    """Return the pipeline for one hyperparameter; integers and booleans arrive typed, numbers may be text."""
    value = f".Values.hyperparameters.{name}"
    if parameter.type == "integer":
        return f"int64 {value}"
    if parameter.type == "boolean":
        return f"toJson {value}"
    if parameter.type == "string":
        return f'include "{chart}.text" {value} | toJson'
    bounds = parameter.model_dump(
        by_alias=True,
        exclude_none=True,
        include={"minimum", "exclusive_minimum", "maximum", "exclusive_maximum"},
    )
    arguments = "".join(f' "{key}" {json.dumps(bound)}' for key, bound in bounds.items())
    return f'include "{chart}.number" (dict "key" "hyperparameters.{name}" "value" {value}{arguments})'
