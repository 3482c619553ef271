"""What users of a chart may set, before and after: keys that came or went, and values that are no longer accepted.

A schema that differs in a way that is not understood counts as narrower: users who upgrade may be refused.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.check.objects import mapping_at
from trainchart.json_documents import encode_value, is_same, resolve_reference

_IGNORED = {"description", "title", "default", "examples", "$comment", "$schema", "$defs", "deprecated", "format"}
_BELOW = {"properties", "items", "additionalProperties", "propertyNames", "required", "type", "enum", "$ref"}
_LOWER = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
_REFERENCE = re.compile(r"'\$ref': '([^'\\]*)'")
_UPPER = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}


class Turn(enum.StrEnum):
    added = "added"
    removed = "removed"
    narrowed = "narrowed"
    widened = "widened"


@dataclass(frozen=True)
class KeyChange:
    """A key of the values, and how what may be set there has changed."""

    path: str
    """Empty for all values together."""
    turn: Turn
    detail: str = ""

    @property
    def subject(self) -> str:
        """Return what has changed, in words."""
        return f"the value {self.path}" if self.path else "values.yaml as a whole"


def compare_schemas(
    old: Mapping[str, Any], new: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[KeyChange, ...]:
    """Return what differs between two JSON Schemas of values, by path; nothing for other descriptions.

    `defaults` are the new chart's own values: a key that has one there may be required without harm.
    """
    comparison = _Comparison(old, new, defaults, set(), _share_definitions(old, new))
    try:
        found = list(comparison.compare("", old, new))
    except RecursionError:
        found = [KeyChange("", Turn.narrowed, "one of the schemas is nested too deeply, or contains itself")]
    return tuple(sorted(found, key=lambda change: (change.path, change.turn, change.detail)))


def _share_definitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether all references of the new schema lead to the same in both."""
    text = repr(new)
    references = _REFERENCE.findall(text)
    return len(references) == text.count("'$ref'") and all(
        is_same(resolve_reference({"$ref": each}, old), resolve_reference({"$ref": each}, new))
        for each in set(references)
    )


@dataclass(frozen=True)
class _Comparison:
    old_root: Mapping[str, Any]
    new_root: Mapping[str, Any]
    defaults: Mapping[str, Any]
    visited: set[tuple[str, str]]
    """Pairs of definitions that were compared: they may hold themselves, and one finding each is enough."""
    same_definitions: bool
    """Whether what the same text refers to is the same, too."""

    def compare(self, path: str, old: Any, new: Any) -> Iterator[KeyChange]:
        references = (_reference(old), _reference(new))
        if all(references):
            if references in self.visited:
                return
            self.visited.add(references)
        old, new = resolve_reference(old, self.old_root), resolve_reference(new, self.new_root)
        if is_same(old, new) and (self.same_definitions or "'$ref'" not in repr(old)):
            return
        if not isinstance(old, Mapping) or not isinstance(new, Mapping):
            yield from _compare_words(path, old, new)
            return
        yield from _compare_types(path, old, new)
        yield from _compare_choices(path, old, new)
        yield from self._compare_required(path, old, new)
        yield from self._compare_properties(path, old, new)
        for key in ("items", "additionalProperties", "propertyNames"):
            if key in old or key in new:
                yield from self.compare(
                    f"{path}.*" if key != "propertyNames" else path, old.get(key, True), new.get(key, True)
                )
        for key in sorted({*old, *new} - _IGNORED - _BELOW):
            yield from self._compare_keyword(path, key, old.get(key), new.get(key))

    def _compare_properties(self, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
        before, after = mapping_at(old, "properties"), mapping_at(new, "properties")
        for key in sorted({*before, *after}):
            below = f"{path}.{key}" if path else key
            # A key without a schema of its own has that of all other keys.
            was, becomes = (
                mine[key] if key in mine else whole.get("additionalProperties", True)
                for mine, whole in ((before, old), (after, new))
            )
            if becomes is False:
                yield KeyChange(below, Turn.removed)
            elif was is False:
                yield KeyChange(below, Turn.added)
            else:
                yield from self.compare(below, was, becomes)

    def _compare_required(self, path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
        before, after = _required(old), _required(new)
        needed = after - before - set(mapping_at(self.defaults, *filter(None, path.split("."))))
        if needed:
            yield KeyChange(path, Turn.narrowed, f"now needs {', '.join(sorted(needed))}")

    def _compare_keyword(self, path: str, key: str, old: Any, new: Any) -> Iterator[KeyChange]:
        if (
            key in ("anyOf", "oneOf", "allOf")
            and isinstance(old, list)
            and isinstance(new, list)
            and len(old) == len(new)
        ):
            for before, after in zip(old, new, strict=True):
                yield from self.compare(path, before, after)
        elif is_same(old, new):
            return
        elif (
            key in _LOWER | _UPPER
            and isinstance(old, (int, float, type(None)))
            and isinstance(new, (int, float, type(None)))
        ):
            is_wider = new is None or (old is not None and (new < old if key in _LOWER else new > old))
            yield KeyChange(path, Turn.widened if is_wider else Turn.narrowed, f"{key} {_said(old)} → {_said(new)}")
        elif new is None:
            yield KeyChange(path, Turn.widened, f"{key} is gone")
        else:
            yield KeyChange(path, Turn.narrowed, f"{key} {_said(old)} → {_said(new)}")


def _compare_words(path: str, old: Any, new: Any) -> Iterator[KeyChange]:
    """Compare where a schema is true (anything) or false (nothing)."""
    if old is new or all(
        schema is True or (isinstance(schema, Mapping) and not set(schema) - _IGNORED) for schema in (old, new)
    ):
        return
    is_wider = new is True or old is False
    yield KeyChange(path, Turn.widened if is_wider else Turn.narrowed, "other keys" if path.endswith(".*") else "")


def _compare_types(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
    before, after = _types(old), _types(new)
    if before == after:
        return
    said = f"type {'|'.join(sorted(before)) or 'any'} → {'|'.join(sorted(after)) or 'any'}"
    # What takes numbers takes integers.
    wide = after | ({"integer"} if "number" in after else set())
    is_wider = not after or (bool(before) and before <= wide)
    yield KeyChange(path, Turn.widened if is_wider else Turn.narrowed, said)


def _compare_choices(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
    before, after = old.get("enum"), new.get("enum")
    if is_same(before, after):
        return
    is_wider = after is None
    if isinstance(before, list) and isinstance(after, list):
        if _are_all_in(before, after) and _are_all_in(after, before):
            return
        is_wider = _are_all_in(before, after)
    yield KeyChange(path, Turn.widened if is_wider else Turn.narrowed, f"choices {_said(before)} → {_said(after)}")


def _are_all_in(some: list[Any], others: list[Any]) -> bool:
    known = set(map(encode_value, others))
    return all(encode_value(choice) in known for choice in some)


def _required(schema: Mapping[str, Any]) -> set[str]:
    found = schema.get("required")
    return {key for key in found if isinstance(key, str)} if isinstance(found, list) else set()


def _types(schema: Mapping[str, Any]) -> set[str]:
    found = schema.get("type")
    return set(map(str, found)) if isinstance(found, list) else {str(found)} if found else set()


def _reference(schema: Any) -> str:
    """Return where a schema refers to if it says nothing else: what stands beside a reference differs by place."""
    says_more = isinstance(schema, Mapping) and set(schema) - _IGNORED - {"$ref"}
    return str(schema.get("$ref", "")) if isinstance(schema, Mapping) and not says_more else ""


def _said(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
