"""The files of a chart of a family: its templates, and Chart.yaml, values.yaml, schema and README from its values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainchart.families.family import README, Family
from trainchart.families.values import build_nodes
from trainchart.packs.templates import PackTemplates
from trainchart.render.chart import RenderedChart
from trainchart.render.layers import layer_templates
from trainchart.render.metadata import KUBE_VERSION, render_family_chart_yaml
from trainchart.render.readme import ValueRow, cell
from trainchart.render.schema import Schema, dump_schema
from trainchart.render.value_tree import ValueNode, walk_leaves
from trainchart.render.values_yaml import render_values_yaml
from trainchart.spec.chart import VALUES_KEY, ChartSpec


def render_family_chart(
    family: Family,
    spec: ChartSpec,
    values: Mapping[str, Any],
    schema: Schema,
    shared: Mapping[str, bytes],
    packs: tuple[PackTemplates, ...],
) -> RenderedChart:
    """Return all files of a chart: those of its `family`, and those of `shared` that the family does not have.

    `packs` are the templates that packs add or change, the weakest first.

    Raises:
        SpecError: a template is wrong, or was written against another block; names file and line.
    """
    nodes = build_nodes(family.values.tree[VALUES_KEY], values)
    rows = [_make_row(leaf) for leaf in walk_leaves(nodes)]
    variables = {
        "name": spec.name,
        "description": spec.description,
        "kube_version": KUBE_VERSION,
        "value_rows": rows,
    }
    rendered = layer_templates({}, (family.templates, *packs)).render(variables)
    if README not in rendered:
        rendered[README] = _render_readme(spec, rows)
    files = {
        **shared,
        **family.ci,
        **{path: text.encode() for path, text in rendered.items() if text.strip()},
        "values.yaml": render_values_yaml(spec.name, nodes, is_training=False).encode(),
        "values.schema.json": dump_schema(schema).encode(),
        "Chart.yaml": render_family_chart_yaml(spec).encode(),
    }
    return RenderedChart(spec.name, spec.version, dict(sorted(files.items())))


def _make_row(leaf: ValueNode) -> ValueRow:
    default = json.dumps(leaf.value, ensure_ascii=False)
    return ValueRow(".".join(leaf.path), f"`{cell(default)}`", cell(" ".join(leaf.description.split())))


def _render_readme(spec: ChartSpec, rows: list[ValueRow]) -> str:
    table = "".join(f"| `{row.key}` | {row.default} | {row.description} |\n" for row in rows)
    return f"""\
# {spec.name}

{spec.description}

A chart of the family `{spec.family}`, generated from the spec of `{spec.name}`. It needs Kubernetes {KUBE_VERSION}.

## Values

| key | default | meaning |
|---|---|---|
{table}"""
