"""The values of a family's charts: a JSON Schema of each, of which values.yaml, its schema and the README follow. Pure.

A key with `properties` is a section; every other key is a value with a default, unless each spec has to give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.plan.layers import Setting, merge_layers
from trainchart.render.value_tree import ValueNode
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Document, Origin, Path

PROPERTIES = "properties"


@dataclass(frozen=True)
class FamilyValues:
    """The values of one chart, and where they come from; paths are those in values.yaml."""

    tree: Mapping[str, Any]
    origins: Mapping[Path, Origin]
    overridden: Mapping[Path, tuple[Setting, ...]]
    spec: Origin
    """Where the spec has values, or else starts."""


def merge_values(schemas: Document, layers: Sequence[Document], spec: Document) -> FamilyValues:
    """Return the values of a chart: the family's defaults, those of `layers` (the weakest first), and those of `spec`.

    Layers and spec have them below `values`.

    Raises:
        SpecError: a key with a plus has no list behind it.
    """
    own = Document({VALUES_KEY: spec.tree.get(VALUES_KEY) or {}}, {(VALUES_KEY,): spec.origins[()], **spec.origins})
    merged = merge_layers([_defaults(schemas), *layers], own)
    return FamilyValues(
        merged.tree[VALUES_KEY],
        {path[1:]: origin for path, origin in merged.origins.items() if path[:1] == (VALUES_KEY,)},
        {path[1:]: settings for path, settings in merged.overridden.items() if path[:1] == (VALUES_KEY,)},
        own.origins[VALUES_KEY,],
    )


def _defaults(schemas: Document) -> Document:
    """Return the defaults in the schemas as a layer of values."""
    origins: dict[Path, Origin] = {(): schemas.origins[()], (VALUES_KEY,): schemas.origins[VALUES_KEY,]}
    tree = {VALUES_KEY: _section_defaults(schemas, (VALUES_KEY,), (VALUES_KEY,), origins)}
    return Document(tree, origins)


def _section_defaults(schemas: Document, source: Path, target: Path, origins: dict[Path, Origin]) -> dict[str, Any]:
    section: Any = schemas.tree
    for key in source:
        section = section[key]
    found: dict[str, Any] = {}
    for name, schema in section.items():
        own, at = (*source, name), (*target, name)
        if PROPERTIES in schema:
            origins[at] = schemas.origins[own]
            found[name] = _section_defaults(schemas, (*own, PROPERTIES), at, origins)
        elif "default" in schema:
            default = (*own, "default")
            found[name] = schema["default"]
            for path, origin in schemas.origins.items():
                if path[: len(default)] == default:
                    origins[(*at, *path[len(default) :])] = origin
    return found


def build_nodes(
    schemas: Mapping[str, Any], values: Mapping[str, Any], path: tuple[str, ...] = ()
) -> tuple[ValueNode, ...]:
    """Return the values as the nodes of values.yaml, in the order of the schemas."""
    return tuple(
        ValueNode(
            (*path, name),
            schema["description"],
            children=build_nodes(schema[PROPERTIES], values[name], (*path, name)),
            is_section=True,
        )
        if PROPERTIES in schema
        else ValueNode((*path, name), schema["description"], value=values[name])
        for name, schema in schemas.items()
    )
