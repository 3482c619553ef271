"""Values files whose numbers and words Helm takes for something else than what is written. Pure.

They are told, not refused: the chart may well want the number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from trainchart.errors import Problem
from trainchart.helm.asked import Schema
from trainchart.helm.schema_refusals import find_schema
from trainchart.json_documents import resolve_reference
from trainchart.kubernetes_yaml import PlainScalar, find_plain_scalars
from trainchart.number_spelling import name_misreading, print_value

_MODE = re.compile(r".*mode", re.IGNORECASE)
"""Keys of file modes, which are written in octal."""


def find_misread_values(text: str, schemas: Mapping[str, Schema], chart: str) -> Iterator[tuple[int, Problem]]:
    """Yield line and problem of each number or word in a values file of `chart` that Helm reads as something else.

    `schemas` are those of the chart and of its subcharts, by name; they tell where a text is meant.
    """
    for scalar in find_plain_scalars(text):
        reason, remedy = _misreading(scalar, _find_schema(scalar.path, schemas, chart))
        if reason:
            message = f"{'.'.join(scalar.path)}: {scalar.spelling} {reason}"
            yield scalar.line, Problem(message, hint=f'quote it: "{scalar.spelling}"{remedy}')


def _misreading(scalar: PlainScalar, schema: Schema) -> tuple[str, str]:
    value = scalar.value
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "", ""  # Null takes a default away, and Helm refuses the others.
    if not isinstance(value, bool) and not (_MODE.fullmatch(scalar.path[-1]) if scalar.path else False):
        reason, remedy = name_misreading(value, scalar.spelling)
        if reason:
            return reason, remedy
    if scalar.spelling != print_value(value) and _takes_any_text(schema):
        return f"becomes the text {print_value(value)}", ""
    return "", ""


def _find_schema(path: tuple[str, ...], schemas: Mapping[str, Schema], chart: str) -> Schema:
    """Return the schema of a value, which a subchart's own key leads to."""
    below = path[0] if path[0] in schemas and path[0] != chart else ""
    root = schemas.get(below or chart, {})
    found = find_schema(path[1:] if below else path, root)
    choices = found.get("anyOf")
    if not isinstance(choices, list):
        return found
    return {**found, "anyOf": [resolve_reference(choice, root) for choice in choices]}


def _takes_any_text(schema: Schema) -> bool:
    """Tell whether a value may be a text, and not only one that stands for a number or is one of a few words."""
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        return any(isinstance(choice, Mapping) and _takes_any_text(choice) for choice in choices)
    types, pattern = schema.get("type"), schema.get("pattern")
    if "string" not in (types if isinstance(types, list) else [types]) or "enum" in schema or "const" in schema:
        return False
    try:
        return not isinstance(pattern, str) or bool(re.search(pattern, "x"))
    except re.error:
        return False
