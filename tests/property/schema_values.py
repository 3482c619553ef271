"""Random values for a JSON Schema: ones that it accepts, and ones that it must refuse.

hypothesis-jsonschema is not used: it resolves every reference first, which is a great deal for the pod definitions of
Kubernetes that the schema of a chart holds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from trainchart.check.sources import KUBERNETES_DEFINITIONS
from trainchart.json_documents import resolve_reference

Schema = Mapping[str, Any]
Path = tuple[str, ...]
_DEEPEST = 7
_LARGEST = 2**40
"""Integers beyond 2**53 are floats to Helm, whoever writes them."""
_WORDS = (
    *("a", "gpu", "team-a", "fast_1", "nvidia.com/gpu", "1e3", "007", "true", "null", "~", "no", "2026-11-21", "{}"),
    "a<no value>b",  # which charts and specs refuse: Helm removes it
)
_OF_TYPE: Mapping[str, Any] = {
    "string": "x y",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": ["x"],
    "object": {"x": "y"},
}


@functools.cache
def _matching(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True).filter(lambda text: len(text) < 200)


def texts() -> st.SearchStrategy[str]:
    """Return texts that YAML, shells and templates stumble over, and ordinary ones."""
    anything = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
    return st.one_of(st.sampled_from(_WORDS), anything)


@dataclass(frozen=True)
class Place:
    """A key of a chart's values that is fixed by the schema, and what the schema says of it."""

    path: Path
    schema: Schema
    is_required: bool


@dataclass(frozen=True)
class SchemaValues:
    """Draws values for `root`, whose `$defs` it uses."""

    root: Schema

    def overrides(self) -> st.SearchStrategy[dict[str, Any]]:
        """Return what a user may put over the defaults: some keys of some sections, each fitting the schema."""
        return self._section(self.root, 4)

    def fitting(self, schema: Schema, depth: int = 0) -> st.SearchStrategy[Any]:
        """Return values that `schema` accepts as a whole. Null is left out: to Helm it means "delete"."""
        schema = self._resolved(schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return st.one_of([self.fitting(option, depth) for option in schema[keyword]])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        types = [kind for kind in _types(schema) if kind != "null"] or ["string"]
        return st.one_of([self._of_type(kind, schema, depth) for kind in types])

    def places(self) -> tuple[Place, ...]:
        """Return every key that the schema names, down to where Kubernetes' own definitions begin."""
        return tuple(self._places(self.root, ()))

    def sections(self) -> tuple[Path, ...]:
        """Return the paths of the mappings that take no other keys than the schema names."""
        closed = [place.path for place in self.places() if self._is_section(self._resolved(place.schema))]
        return ((), *closed)

    def breaking(self, place: Place) -> tuple[Any, ...]:
        """Return values that the schema must refuse at `place`: wrong types, out of bounds, and null."""
        schema = self._resolved(place.schema)
        if "anyOf" in schema or "oneOf" in schema:
            return ()
        found: list[Any] = [None] if place.is_required else []
        if "const" in schema:
            return (*found, not schema["const"], "x")
        if "enum" in schema:
            return (*found, "Sometimes", 7)
        types = _types(schema)
        for kind, value in _OF_TYPE.items():
            if kind not in types and not (kind == "integer" and "number" in types):
                found.append(value)
        found += [schema[key] - 1 for key in ("minimum",) if key in schema]
        found += [schema[key] + 1 for key in ("maximum",) if key in schema]
        found += [schema[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if key in schema]
        if "pattern" in schema and "string" in types:
            found += [text for text in ("no such\ttext", "-", "%") if not re.search(schema["pattern"], text)]
        if schema.get("minItems"):
            found.append([])
        return tuple(found)

    def _places(self, schema: Schema, path: Path) -> Iterator[Place]:
        for key, child in schema.get("properties", {}).items():
            below = (*path, key)
            yield Place(below, child, key in schema.get("required", ()))
            resolved = self._resolved(child)
            if self._is_section(resolved) and not self._is_kubernetes(child):
                yield from self._places(resolved, below)

    def _is_section(self, schema: Schema) -> bool:
        return schema.get("additionalProperties") is False and bool(schema.get("properties"))

    def _section(self, schema: Schema, most: int) -> st.SearchStrategy[dict[str, Any]]:
        """Return mappings with up to `most` keys of a section whose other keys have defaults."""
        properties = schema["properties"]

        @st.composite
        def draw_section(draw: st.DrawFn) -> dict[str, Any]:
            keys = draw(st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=most))
            return {key: draw(self._entry(properties[key])) for key in keys}

        return draw_section()

    def _entry(self, schema: Schema) -> st.SearchStrategy[Any]:
        resolved = self._resolved(schema)
        if self._is_section(resolved) and not self._is_kubernetes(schema):
            return self._section(resolved, 3)
        return self.fitting(schema)

    def _of_type(self, kind: str, schema: Schema, depth: int) -> st.SearchStrategy[Any]:
        if kind == "string":
            if schema.get("format") == "date-time":
                return st.just("2026-11-21T13:00:00Z")
            return _matching(schema["pattern"]) if "pattern" in schema else texts()
        if kind == "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", _limit(schema)))
        if kind == "number":
            low, high = _bounds(schema)
            return st.one_of(st.integers(int(low), int(high)), st.floats(low, high)).filter(_within(schema))
        if kind == "array":
            few = 0 if depth >= _DEEPEST else 2
            items = self.fitting(schema.get("items", {}), depth + 1)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=max(few, schema.get("minItems", 0)))
        return st.booleans() if kind == "boolean" else self._object(schema, depth)

    def _object(self, schema: Schema, depth: int) -> st.SearchStrategy[dict[str, Any]]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        if not properties and schema.get("additionalProperties") is False:
            return st.just({})
        if not properties:
            values = self.fitting(schema.get("additionalProperties") or {"type": "string"}, depth + 1)
            extra = {key: st.just({"name": "extra"}) if key == "metadata" else texts() for key in required}
            free = st.dictionaries(self._keys(schema), values, max_size=2)
            return st.tuples(free, st.fixed_dictionaries(extra)).map(lambda both: {**both[0], **both[1]})
        optional = sorted(set(properties) - set(required))

        @st.composite
        def draw_object(draw: st.DrawFn) -> dict[str, Any]:
            some = draw(st.lists(st.sampled_from(optional), unique=True, max_size=2)) if optional else []
            keys = [*required, *(some if depth < _DEEPEST else ())]
            return {key: draw(self.fitting(properties[key], depth + 1)) for key in keys}

        return draw_object()

    def _keys(self, schema: Schema) -> st.SearchStrategy[str]:
        names = schema.get("propertyNames", {})
        rules = [names, *names.get("allOf", ())]
        pattern = next((rule["pattern"] for rule in rules if "pattern" in rule), r"[a-z][a-z0-9]{0,8}")
        refused = [rule["not"]["pattern"] for rule in rules if "not" in rule]
        return _matching(pattern).filter(lambda key: not any(re.search(rule, key) for rule in refused))

    def _resolved(self, schema: Schema) -> Schema:
        resolved: Schema = resolve_reference(schema, self.root)
        return resolved

    def _is_kubernetes(self, schema: Schema) -> bool:
        return "$ref" in resolve_reference(schema, self.root, until=KUBERNETES_DEFINITIONS)


def _types(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        return ["object"] if "properties" in schema else ["string"]
    return [kind] if isinstance(kind, str) else list(kind)


def _limit(schema: Schema) -> int:
    return 2**31 - 1 if schema.get("format") == "int32" else _LARGEST


def _bounds(schema: Schema) -> tuple[float, float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1e6))
    return low, schema.get("maximum", schema.get("exclusiveMaximum", max(low + 1, 1e6)))


def _within(schema: Schema) -> Any:
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return lambda number: (low is None or number > low) and (high is None or number < high)
