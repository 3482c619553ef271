"""The spec of a new chart of a family, with all of its values as comments. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.families.values import PROPERTIES
from trainchart.kubernetes_yaml import dump_mapping

_WIDTH = 110


def render_chart_spec(name: str, family: str, description: str, schemas: Mapping[str, Any]) -> str:
    """Return the spec of a chart: values without a default are left to fill in, and all others are comments."""
    head = {
        "apiVersion": "trainchart/v1",
        "kind": "Chart",
        "family": family,
        "name": name,
        "version": "0.1.0",
        "description": description,
    }
    lines = "".join(f"{line}\n" for line in _value_lines(schemas, 1))
    return (
        f"# A chart of the family {family}. To set a value, uncomment it; commented values keep their defaults.\n"
        f"{dump_mapping(head)}values:\n{lines}"
    )


def _value_lines(schemas: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, schema in schemas.items():
        about = " ".join(schema["description"].split())
        yield from textwrap.wrap(about, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
        if PROPERTIES in schema:
            yield f"{indent}{'' if _has_no_default(schema) else '# '}{key}:"
            yield from _value_lines(schema[PROPERTIES], depth + 1)
        elif _has_no_default(schema):
            yield f"{indent}{key}:"
        else:
            yield f"{indent}# {key}: {json.dumps(schema['default'], ensure_ascii=False)}"


def _has_no_default(schema: Mapping[str, Any]) -> bool:
    below = schema.get(PROPERTIES)
    return any(map(_has_no_default, below.values())) if below is not None else "default" not in schema
