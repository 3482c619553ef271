"""Rules about values.schema.json: closed everywhere, in step with values.yaml, ready for what --set delivers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import mapping_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import (
    KUBERNETES_DEFINITIONS,
    SCHEMA_FILE,
    VALUES_FILE,
    chart_values,
    unset_values,
    value_keys,
    values_schema,
)
from trainchart.json_documents import resolve_reference

_ALLOWED_EXTRA = {"global", "enabled"}
"""What a parent chart sets in a subchart's values."""
_NUMBER_LIKE = re.compile(r"\d+")


def check_closed(given: CheckInput) -> Iterator[Finding]:
    """Find objects of the schema that take any key; a map whose values have a schema or a description is meant."""
    for path, schema in _walk(values_schema(given)):
        if _is_open(schema):
            yield Finding(
                f"{path or 'the top level'} takes unknown keys, so a typo there is silently ignored",
                path=SCHEMA_FILE,
                hint="additionalProperties: false, or a description that says it is a free map",
            )


def check_agreement(given: CheckInput) -> Iterator[Finding]:
    """Find values without a schema, and properties of the schema without a default."""
    schema = values_schema(given)
    if not schema:
        return
    lines = {place.path: place.line for place in value_keys(given)}
    known = dict(_walk(schema))
    values = chart_values(given)
    may_be_missing = _ALLOWED_EXTRA | unset_values(given)
    for key, line in lines.items():
        above, name = ".".join(key[:-1]), key[-1]
        properties = mapping_at(known.get(above), "properties")
        if above in known and properties and name not in properties and not _takes_extra(known[above]):
            yield Finding(f"{'.'.join(key)} is not in the schema", path=VALUES_FILE, line=line)
    for path, found in known.items():
        section = _value_at(values, path)
        for name in mapping_at(found, "properties"):
            # What also stands at the top level is documented there, such as settings for all pods.
            if isinstance(section, Mapping) and name not in {*section, *may_be_missing, *values}:
                where = f"{path}.{name}".lstrip(".")
                yield Finding(
                    f"{where} is in the schema but has no default", path=VALUES_FILE, line=lines.get(_split(path), 0)
                )


def check_set_types(given: CheckInput) -> Iterator[Finding]:
    """Find values that `--set` cannot deliver: 0.01 arrives as a text, and 20261121 as a number."""
    schema = values_schema(given)
    lines = {place.path: place.line for place in value_keys(given)}
    for path, found in _walk(schema):
        for name, described in mapping_at(found, "properties").items():
            where = f"{path}.{name}".lstrip(".")
            types = _types(_resolve(schema, described))
            value = _value_at(chart_values(given), where)
            line = lines.get(_split(where), 0)
            if "number" in types and "string" not in types:
                yield Finding(
                    f"{where} is a number, but --set {where}=0.5 delivers a string, which the schema refuses",
                    path=VALUES_FILE,
                    line=line,
                    hint='"type": ["number", "string"] with a pattern',
                )
            is_tag = name.lower().endswith("tag") or (isinstance(value, str) and _NUMBER_LIKE.fullmatch(value))
            if types == {"string"} and is_tag and not mapping_at(_resolve(schema, described)).get("enum"):
                yield Finding(
                    f"{where} is a string, but --set {where}=20261121 delivers a number, which the schema refuses",
                    path=VALUES_FILE,
                    line=line,
                    hint='"type": ["string", "integer"]',
                )


def _walk(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path in values, schema) of every object with named properties, or of none at all."""
    yield from _walk_below(schema, schema, "", ())


def _walk_below(
    root: Mapping[str, Any], node: Any, path: str, above: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reference = mapping_at(node).get("$ref")
    if isinstance(reference, str):
        if reference in above:
            return  # A definition that holds itself.
        above = (*above, reference)
    node = _resolve(root, node)
    if not isinstance(node, Mapping):
        return
    if node.get("properties") or "object" in _types(node):
        yield path, node
    for name, below in mapping_at(node, "properties").items():
        yield from _walk_below(root, below, f"{path}.{name}".lstrip("."), above)


def _resolve(root: Mapping[str, Any], node: Any) -> Any:
    resolved = resolve_reference(node, root, until=KUBERNETES_DEFINITIONS)
    return None if "$ref" in mapping_at(resolved) else resolved


def _types(node: Any) -> set[str]:
    found = mapping_at(node).get("type")
    return {found} if isinstance(found, str) else {str(kind) for kind in found} if isinstance(found, list) else set()


def _is_open(schema: Mapping[str, Any]) -> bool:
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    if schema.get("properties"):
        return extra is None or extra is True
    # Without properties it is a map; what may be in it must be said one way or the other.
    return extra in (None, True) and not schema.get("description") and not schema.get("patternProperties")


def _takes_extra(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") not in (None, False) or bool(schema.get("patternProperties"))


def _split(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def _value_at(values: Any, path: str) -> Any:
    for part in _split(path):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


RULES = (
    Rule(
        "schema-closed",
        "Helm ignores a misspelt key in --set, unless the schema refuses it.",
        check_closed,
        "https://helm.sh/docs/topics/charts/#schema-files",
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "schema-agrees",
        "A value without a schema is not checked, and users do not find a property without a default.",
        check_agreement,
        "https://helm.sh/docs/topics/charts/#schema-files",
        others=Severity.info,
        scope=Scope.charts,
        needs=(VALUES_FILE, SCHEMA_FILE),
    ),
    Rule(
        "set-types",
        "--set only knows integers, booleans and strings, so it turns 0.01 into a string and a date tag into a number.",
        check_set_types,
        "https://helm.sh/docs/intro/using_helm/#the-format-and-limitations-of---set",
        others=Severity.info,
        scope=Scope.charts,
        needs=(VALUES_FILE, SCHEMA_FILE),
    ),
)
