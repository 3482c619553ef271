"""JSON Schemas of a family's values: what they may be, the one schema of a chart, and values that do not fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from trainchart.errors import Problem, SpecError
from trainchart.families.values import PROPERTIES, VALUES_KEY, FamilyValues
from trainchart.plan.typed import find_origin, suggest_word
from trainchart.spec.document import Document, Path
from trainchart.spec.section import KUBERNETES_DEFINITION

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_DATA = ("default", "const", "enum", "examples")
"""Keywords behind which there is no schema."""


def find_schema_problems(values: Document) -> Iterator[Problem]:
    """Yield what is wrong with the schemas of a family's values."""
    yield from _find_in_section(values, (VALUES_KEY,), values.tree[VALUES_KEY])


def _find_in_section(values: Document, path: Path, section: Any) -> Iterator[Problem]:
    if not isinstance(section, Mapping):
        yield _problem(values, path, "is not a mapping", "expected names of values, and a JSON Schema for each")
        return
    for name, schema in section.items():
        own = (*path, name)
        if not _KEY.fullmatch(str(name)):
            yield _problem(values, own, "is not a name for a value", "use letters and digits, such as maxReplicas")
        elif not isinstance(schema, Mapping):
            yield _problem(values, own, "is not a JSON Schema", "write for example {type: string, default: abc}")
        elif not isinstance(schema.get("description"), str) or not schema["description"].strip():
            yield _problem(values, own, "has no description", "it becomes the comment in values.yaml")
        elif PROPERTIES in schema:
            others = [key for key in schema if key not in (PROPERTIES, "description", "type")]
            for key in others:
                yield _problem(values, (*own, key), "is not part of a section", "sections have description, properties")
            yield from _find_in_section(values, (*own, PROPERTIES), schema[PROPERTIES])
        else:
            yield from _find_in_value(values, own, schema)


def _find_in_value(values: Document, path: Path, schema: Mapping[str, Any]) -> Iterator[Problem]:
    foreign = list(_find_references(schema, path))
    yield from (_problem(values, found, "refers to another schema", "write it out") for found in foreign)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield _problem(values, (*path, *error.absolute_path), "is not JSON Schema", error.message)
        return
    for found, pattern in _find_patterns(schema, path):
        try:
            re.compile(pattern)
        except re.error as error:
            yield _problem(values, found, f"is not a regular expression: {error}")
            return
    if "default" in schema and not foreign:
        validator = jsonschema.Draft202012Validator(_without_kubernetes(schema))
        for misfit in validator.iter_errors(schema["default"]):
            yield _problem(values, (*path, "default"), f"does not fit its own schema: {misfit.message}")


def _without_kubernetes(node: Any) -> Any:
    return {key: value for key, value in node.items() if key != KUBERNETES_DEFINITION}


def _find_references(node: Any, path: Path) -> Iterator[Path]:
    """Yield the keywords of JSON Schema that name other schemas, which may be anywhere."""
    for key, value in _keywords(node):
        if str(key).startswith("$"):
            yield (*path, key)
        elif key not in _DATA:
            yield from _find_references(value, (*path, key))


def _find_patterns(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for key, value in _keywords(node):
        if key == "pattern" and isinstance(value, str):
            yield (*path, key), value
        elif key not in _DATA:
            yield from _find_patterns(value, (*path, key))


def _keywords(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, Mapping):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)


def _problem(values: Document, path: Path, what: str, hint: str = "") -> Problem:
    return Problem(f"{'.'.join(map(str, path))} {what}", str(find_origin(values.origins, path)), hint)


def close_schema(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return one JSON Schema for all values: closed, and every key required, since values.yaml has all of them."""
    properties = {
        name: {"description": schema["description"], **close_schema(schema[PROPERTIES])}
        if PROPERTIES in schema
        else dict(schema)
        for name, schema in schemas.items()
    }
    return {"type": "object", PROPERTIES: properties, "required": list(properties), "additionalProperties": False}


def require_values(values: FamilyValues, schema: Mapping[str, Any], title: str) -> None:
    """Check the values of a chart against their schema.

    Raises:
        SpecError: names every unknown, missing or wrong value, with its line.
    """
    errors = jsonschema.Draft202012Validator(schema).iter_errors(values.tree)
    problems = [problem for error in errors for problem in _explain(values, error)]
    if problems:
        raise SpecError(f"the values do not fit the family {title}", problems=tuple(problems))


def _explain(values: FamilyValues, error: jsonschema.ValidationError) -> Iterator[Problem]:
    found = jsonschema.exceptions.best_match([error])
    path = tuple(found.absolute_path)
    where = str(find_origin(values.origins, path))
    prefix = "".join(f"{part}." for part in (VALUES_KEY, *path))
    if found.validator == "required":
        name = next(name for name in found.validator_value if name not in found.instance)
        about = (found.schema.get(PROPERTIES) or {}).get(name, {}).get("description", "")
        yield Problem(f"{prefix}{name} is missing", str(values.spec), str(about))
    elif found.validator == "additionalProperties" and isinstance(found.schema.get(PROPERTIES), Mapping):
        known = list(found.schema[PROPERTIES])
        for name in (name for name in found.instance if name not in known):
            at = str(find_origin(values.origins, (*path, name)))
            yield Problem(f"unknown value {prefix}{name}", at, suggest_word(str(name), known))
    else:
        text = found.message if len(found.message) <= 160 else found.message[:157] + "..."
        yield Problem(f"{prefix.removesuffix('.')}: {text}", where, str(found.schema.get("description", "")))
