"""A ChartPlan to all files of its chart, as bytes by path. Owner of jinja2.

Jinja decides what is fixed for a model (its name, strategy, hyperparameters); Helm decides at install. Their
delimiters do not collide: <% %>, <%= %> and <%# %> here, {{ }} there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

from trainchart.errors import RenderError
from trainchart.packs.templates import PackTemplates
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.strategies import STRATEGIES
from trainchart.plan.volumes import RESERVED_FOLDERS
from trainchart.render.metadata import KUBE_VERSION, render_chart_yaml
from trainchart.render.readme import describe_hyperparameters, list_value_rows
from trainchart.render.schema import NUMBER_PATTERN, Schema, dump_schema
from trainchart.render.templates import SYNTAX
from trainchart.render.value_tree import ValueNode, build_value_tree
from trainchart.render.values_yaml import render_values_yaml
from trainchart.spec.section import (
    LABEL_VALUE_PATTERN,
    QUEUE_KEY_PATTERN,
    RESERVED_ENV_PATTERN,
    PassThrough,
)
from trainchart.spec.settings import EveryPodSettings, PodSettings
from trainchart_runtime import contract

FAMILY = "training-job"
"""The chart family that every model uses, a folder of chart-templates/."""


@dataclass(frozen=True)
class RenderedChart:
    """A chart's files by path inside the chart folder, in sorted order."""

    name: str
    version: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class PodField:
    """A pass-through field as a template sees it: key in values.yaml, key in Kubernetes."""

    value: str
    key: str
    merge: bool
    is_everywhere: bool
    """Whether every pod of the chart has it, or the training pods only."""
    fills: bool
    """Whether its texts may name the release."""


def render_chart(
    plan: ChartPlan, family: Mapping[str, str], schema: Schema, packs: tuple[PackTemplates, ...] = ()
) -> RenderedChart:
    """Render the templates of `family` (path -> text) and add values.yaml, its `schema` and Chart.yaml.

    `packs` are templates that packs add or change, the weakest first.

    Raises:
        RenderError: a template of the family is broken; names file and line.
        SpecError: a template of a pack is wrong; names file and line.
    """
    values = build_value_tree(plan)
    environment = _environment(tuple(family.items()))
    variables = _variables(plan, values)
    files: dict[str, str] = {}
    if packs:
        # Only now: most charts have no templates of packs.
        from trainchart.render.layers import layer_templates

        files = layer_templates(family, packs).render(variables)
    files |= {path: _render(environment, path, variables) for path in family if path not in files}
    files["values.yaml"] = render_values_yaml(plan.name, values)
    files["values.schema.json"] = dump_schema(schema)
    files["Chart.yaml"] = render_chart_yaml(plan)
    kept = {path: text.encode() for path, text in sorted(files.items()) if text.strip()}
    return RenderedChart(plan.name, plan.spec.version, kept)


@functools.cache
def _environment(family: tuple[tuple[str, str], ...]) -> jinja2.Environment:
    """Return the templates of a family, which are compiled once however many charts they make."""
    return jinja2.Environment(loader=jinja2.DictLoader(dict(family)), **SYNTAX)


def list_pod_fields(place: str) -> tuple[PodField, ...]:
    """Return the pass-through fields of a place (pod, container or append) in the order of the model."""
    return tuple(
        PodField(field.alias or name, mark.key, mark.merge, name in EveryPodSettings.model_fields, mark.fills)
        for name, field in PodSettings.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, PassThrough) and mark.place == place
    )


def _render(environment: jinja2.Environment, path: str, variables: Mapping[str, Any]) -> str:
    try:
        return environment.get_template(path).render(variables)
    except jinja2.TemplateSyntaxError as error:
        raise RenderError(
            f"{error.name}:{error.lineno}: {error.message}", hint="the chart template is broken"
        ) from error
    except jinja2.UndefinedError as error:
        raise RenderError(f"{path}: {error.message}", hint="templates can use only what the plan offers") from error


def _variables(plan: ChartPlan, values: tuple[ValueNode, ...]) -> dict[str, Any]:
    """Return what templates may use; anything else is an error."""
    log_volume = plan.spec.volumes.get(plan.spec.log_volume)
    return {
        "name": plan.name,
        "description": plan.spec.description,
        "strategy": STRATEGIES[plan.spec.strategy],
        "roles": plan.roles,
        "replicas": {role: plan.spec.roles[role].replicas for role in plan.roles},
        "leader": plan.spec.leader,
        "log_volume": plan.spec.log_volume,
        "log_volume_is_shared": log_volume is None or not log_volume.access_mode.startswith("ReadWriteOnce"),
        "pod_fields": list_pod_fields("pod"),
        "container_fields": list_pod_fields("container"),
        "appended": {field.key: field for field in list_pod_fields("append")},
        "hyperparameters": describe_hyperparameters(plan),
        "program_variables": [
            *contract.PROGRAM_VARIABLES,
            *(contract.hyperparameter_variable(name) for name in plan.spec.hyperparameters),
        ],
        "value_rows": list_value_rows(plan, values),
        "number_pattern": NUMBER_PATTERN.replace("\\", "\\\\"),
        "kube_version": KUBE_VERSION,
        "reserved_folders": RESERVED_FOLDERS,
        "reserved_env_pattern": RESERVED_ENV_PATTERN,
        "label_value_pattern": LABEL_VALUE_PATTERN,
        "kueue_label": contract.KUEUE_LABEL,
        "queue_key_pattern": QUEUE_KEY_PATTERN.replace("\\", "\\\\"),
    }
