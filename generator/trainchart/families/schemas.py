"""JSON Schemas of a family's values: what they may be, the one schema of a chart, and values that do not fit. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import jsonschema

from trainchart.errors import Problem, SpecError
from trainchart.families.values import PROPERTIES, FamilyValues
from trainchart.packs.locks import LockedPath
from trainchart.plan.layers import ANY_ENTRY
from trainchart.plan.typed import find_origin, suggest_word
from trainchart.render.schema import SCHEMAS_BY_NAME, SUBCHART_KEYS
from trainchart.schema_validation import make_validator
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Document, Path
from trainchart.spec.section import KUBERNETES_DEFINITION

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_DATA = ("default", "const", "enum", "examples", "dependentRequired")
"""Keywords behind which there is no schema."""
_EXAMPLE = "write for example io.k8s.api.core.v1.Toleration"
_KEYWORDS = (
    *(key for key in jsonschema.Draft202012Validator.VALIDATORS if not key.startswith("$")),
    *("then", "else", "minContains", "maxContains", "title", "description", "default", "examples", "deprecated"),
    *("readOnly", "writeOnly", "contentEncoding", "contentMediaType", KUBERNETES_DEFINITION),
)
"""All that a schema may have; Helm would ignore what is misspelt."""


def find_schema_problems(values: Document) -> Iterator[Problem]:
    """Yield what is wrong with the schemas of a family's values."""
    yield from _find_in_section(values, (VALUES_KEY,), values.tree[VALUES_KEY])


def _find_in_section(values: Document, path: Path, section: Any) -> Iterator[Problem]:
    if not isinstance(section, Mapping):
        yield _problem(values, path, "is not a mapping", "expected value names, with a JSON Schema for each")
        return
    for name, schema in section.items():
        own = (*path, name)
        if not _KEY.fullmatch(str(name)):
            yield _problem(values, own, "is not a valid value name", "use letters and digits, such as maxReplicas")
        elif len(own) == 2 and name in SUBCHART_KEYS:
            yield _problem(values, own, "is reserved for Helm", "use another name")
        elif not isinstance(schema, Mapping):
            yield _problem(values, own, "is not a JSON Schema", "write for example {type: string, default: abc}")
        elif not isinstance(schema.get("description"), str) or not schema["description"].strip():
            yield _problem(values, own, "has no description", "it becomes the comment in values.yaml")
        elif PROPERTIES in schema:
            others = [key for key in schema if key not in (PROPERTIES, "description", "type")]
            for key in others:
                yield _problem(
                    values, (*own, key), "is not part of a section", "a section has description and properties"
                )
            yield from _find_in_section(values, (*own, PROPERTIES), schema[PROPERTIES])
        else:
            yield from _find_in_value(values, own, schema)


def _find_in_value(values: Document, path: Path, schema: Mapping[str, Any]) -> Iterator[Problem]:
    problems = list(_find_wrong_keywords(values, path, schema))
    yield from problems
    if problems:
        return
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield _problem(values, (*path, *error.absolute_path), "is not a valid JSON Schema", error.message)


def _find_wrong_keywords(values: Document, path: Path, schema: Mapping[str, Any]) -> Iterator[Problem]:
    for found, key, value in _keywords(schema, path):
        if str(key).startswith("$"):
            yield _problem(values, found, "refers to another schema", "copy that schema here")
        elif key not in _KEYWORDS:
            yield _problem(values, found, "is not a JSON Schema keyword", suggest_word(str(key), list(_KEYWORDS)))
        elif key == KUBERNETES_DEFINITION and not isinstance(value, str):
            yield _problem(values, found, "is not a Kubernetes type", _EXAMPLE)
        elif key == "pattern" and isinstance(value, str):
            try:
                re.compile(value)
            except re.error as error:
                yield _problem(values, found, f"is not a regular expression: {error}")
    if "default" in schema and schema["default"] is None:
        hint = 'write an empty value, such as "" or []; without default, each spec has to set it'
        yield _problem(values, (*path, "default"), "is null, which Helm removes", hint)


def find_default_problems(values: Document, definitions: Collection[str]) -> Iterator[Problem]:
    """Yield types that are not in `definitions`, and defaults that do not fit; a pattern may never end."""
    for path, schema in _leaves(values.tree[VALUES_KEY], (VALUES_KEY,)):
        for found, key, value in _keywords(schema, path):
            if key == KUBERNETES_DEFINITION and value not in definitions:
                close = difflib.get_close_matches(value, definitions, n=1)
                hint = f"did you mean {close[0]}?" if close else _EXAMPLE
                yield _problem(values, found, f"is {value}, which is not a Kubernetes type", hint)
        if "default" in schema:
            own = {key: value for key, value in schema.items() if key != KUBERNETES_DEFINITION}
            for misfit in make_validator(own).iter_errors(schema["default"]):
                yield _problem(values, (*path, "default"), f"does not fit its own schema: {_cut(misfit.message)}")


def resolve_lock(values: Document, locked: LockedPath) -> LockedPath | Problem:
    """Return a lock on one of a family's values, or a key of it, with its path in the values; or what is wrong."""
    section: Mapping[str, Any] = values.tree[VALUES_KEY]
    path, rest = [VALUES_KEY], list(locked.path[1:])
    schema: Mapping[str, Any] = {PROPERTIES: section}
    while rest and PROPERTIES in schema and rest[0] in schema[PROPERTIES]:
        schema = schema[PROPERTIES][rest[0]]
        path.append(rest.pop(0))
    if PROPERTIES in schema:
        leaves = [".".join(str(part) for part in leaf if part != PROPERTIES) for leaf, _ in _leaves(section, ())]
        hint = suggest_word(".".join(locked.path[1:]), leaves)
        what = f"unknown value {locked.key}" if rest else f"{locked.key} is a section"
        return Problem(what, str(locked.origin), hint)
    if rest:
        is_open = schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping)
        # With * for every key, the chart's schema would not know it.
        if not is_open or ANY_ENTRY in rest:
            hint = f"lock {'.'.join(path)} itself"
            return Problem(f"{locked.key} cannot be locked by itself", str(locked.origin), hint)
        schema = schema["additionalProperties"]
        path.append(".".join(rest))  # a resource's name may hold dots
    kinds = schema.get("type", ())
    if locked.lock.allowed is None and "integer" not in ([kinds] if isinstance(kinds, str) else kinds):
        hint = "list the allowed values under enum"
        return Problem(f"{locked.key} is not an integer, so it has no range", str(locked.origin), hint)
    return replace(locked, path=tuple(path))


def _leaves(section: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the values of a section, and of the sections in it, with their schemas."""
    for name, schema in section.items():
        if PROPERTIES in schema:
            yield from _leaves(schema[PROPERTIES], (*path, name, PROPERTIES))
        else:
            yield (*path, name), schema


def _keywords(schema: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the keywords of a schema, and of the schemas in it; what a property is called is not a keyword."""
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from _keywords(each, (*path, number))
    elif isinstance(schema, Mapping):
        for key, value in schema.items():
            yield (*path, key), key, value
            if key in SCHEMAS_BY_NAME and isinstance(value, Mapping):
                for name, each in value.items():
                    yield from _keywords(each, (*path, key, name))
            elif key in _KEYWORDS and key not in _DATA:
                yield from _keywords(value, (*path, key))


def _cut(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."


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
    errors = make_validator(schema).iter_errors(values.tree)
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
        yield Problem(
            f"{prefix.removesuffix('.')}: {_cut(found.message)}", where, str(found.schema.get("description", ""))
        )
