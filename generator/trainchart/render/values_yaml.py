"""values.yaml: the plan's values as commented YAML. Data is dumped by a library; order and comments are ours."""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterator

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.chart_plan import ChartPlan
from trainchart.render.value_tree import ValueNode, build_value_tree

_WIDTH = 110


def render_values_yaml(plan: ChartPlan) -> str:
    """Return values.yaml with a comment above every key."""
    lines = [f"# Values of the chart {plan.name}. Generated from its model spec: change that, not this file.", ""]
    for node in build_value_tree(plan):
        lines += [*_lines(node, 0), ""]
    return "\n".join(lines[:-1]) + "\n"


def _lines(node: ValueNode, depth: int) -> Iterator[str]:
    indent = "  " * depth
    prefix = f"{indent}# "
    yield from textwrap.wrap(
        f"{node.key} -- {node.description}", _WIDTH, initial_indent=prefix, subsequent_indent=prefix
    )
    if node.is_unset:
        yield f"{prefix}{node.key}: unset; the program decides"
        return
    if node.is_section:
        has_values = not all(child.is_unset for child in node.children)
        yield f"{indent}{node.key}:" if has_values else f"{indent}{node.key}: {{}}"
        for child in node.children:
            yield from _lines(child, depth + 1)
        return
    yield from textwrap.indent(_dump_leaf(node.key, json.dumps(node.value)), indent).splitlines()


@functools.cache
def _dump_leaf(key: str, value_json: str) -> str:
    """Return `key: value` as YAML. Most keys have the same default in every role and every chart."""
    return dump_mapping({key: json.loads(value_json)})
