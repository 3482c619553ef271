"""values.yaml: the plan's values as commented YAML. Data is dumped by a library; order and comments are ours."""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterator

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.render.value_tree import ValueNode
from trainchart.spec.settings import POD_SETTINGS, EveryPodSettings

_WIDTH = 118
_COMMENTED_ONCE = ("roles", "volumes")
"""Sections whose entries have the same keys: the comments of the first one hold for all."""
_POD_SETTINGS_NOTE = f"""\
# Pod settings: for all training pods here, or for those of one role, which take precedence, such as
# roles.worker.nodeSelector. From {next(iter(EveryPodSettings.model_fields.values())).alias} on, they apply to every \
pod of the chart, and can also be set for
# run.controller and tensorboard.
"""


def render_values_yaml(chart: str, nodes: tuple[ValueNode, ...], *, is_training: bool = True) -> str:
    """Return values.yaml of `nodes`, each with a comment: behind it where that fits into the line, or else above it."""
    lines = [f"# Values of the chart {chart}. Generated from its spec: change the spec, not this file."]
    pod_settings, shared = (POD_SETTINGS, _COMMENTED_ONCE) if is_training else ((), ())
    for before, node in zip((None, *nodes), nodes, strict=False):
        if node.key in pod_settings and (before is None or before.key not in pod_settings):
            lines += ["", *_POD_SETTINGS_NOTE.splitlines(), ""]
        elif node.is_section or before is None or before.is_section:
            lines.append("")
        lines += _lines(node, 0, shares_comments=node.key in shared)
    return "\n".join(lines) + "\n"


def _lines(
    node: ValueNode, depth: int, *, first: ValueNode | None = None, shares_comments: bool = False
) -> Iterator[str]:
    """Yield the lines of a key; one that has the comment of `first`, its like further up, has none of its own."""
    is_commented = first is None or (node.is_unset != first.is_unset)
    indent = "  " * depth
    # Every line break would end the comment, those of Unicode too.
    description = " ".join(node.description.split())
    own = [f"{indent}{line}" for line in _own_lines(node)]
    if not is_commented:
        yield from own if not node.is_unset else []
    elif description and len(own) == 1 and len(own[0]) + len(description) + 4 <= _WIDTH:
        yield f"{own[0]}  # {description}"
    else:
        yield from _wrap_comment(description, f"{indent}# ")
        yield from own
    above = {child.key: child for child in first.children} if first else {}
    for number, child in enumerate(node.children):
        # What has no like further up is told below the comment of its section.
        like = above.get(child.key, child if first else None)
        if shares_comments and number:
            like = node.children[0]
        yield from _lines(child, depth + 1, first=like)


def _own_lines(node: ValueNode) -> list[str]:
    """Return the lines of a key without those below it."""
    if node.is_section:
        has_values = not all(child.is_unset for child in node.children)
        empty = _dump_leaf(node.key, "{}").rstrip()
        return [empty.removesuffix(" {}") if has_values else empty]
    if node.is_unset and node.value is None:
        return [f"# {node.key}: unset; the program decides"]
    lines = _dump_leaf(node.key, json.dumps(node.value)).splitlines()
    return [f"# {line}" for line in lines] if node.is_unset else lines


@functools.lru_cache(4096)
def _wrap_comment(text: str, prefix: str) -> tuple[str, ...]:
    """Return the lines of a comment. Charts of one family have most of them in common."""
    lines = textwrap.wrap(text, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False)
    return tuple(lines)


@functools.lru_cache(4096)
def _dump_leaf(key: str, value_json: str) -> str:
    """Return `key: value` as YAML. Most keys have the same default in every role and every chart."""
    return dump_mapping({key: json.loads(value_json)})
