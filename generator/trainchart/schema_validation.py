"""Compares values with a JSON schema as Helm does: never fetches another one, and reads patterns as Go does. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import referencing
from jsonschema.validators import extend, validator_for

_DOLLAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+(?:\]|\\?\Z)|\$", re.DOTALL)
"""What a dollar sign may stand in, before it: an escape, or a set of characters."""


def make_validator(schema: Any) -> Any:
    """Return what compares values with `schema`, of the draft that it names or else the latest."""
    return _extend(validator_for(schema, jsonschema.Draft202012Validator))(schema, registry=referencing.Registry())


@functools.cache
def _extend(draft: Any) -> Any:
    properties = draft.VALIDATORS.get("patternProperties")

    def check_pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
        del schema
        if validator.is_type(value, "string") and not re.search(end_as_go(pattern), value):
            yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")

    def check_properties(
        validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any
    ) -> Iterator[jsonschema.ValidationError]:
        ended = {end_as_go(pattern): each for pattern, each in patterns.items()}
        yield from properties(validator, ended, value, schema)

    keywords = {"pattern": check_pattern, "patternProperties": check_properties}
    return extend(draft, keywords)  # type: ignore[no-untyped-call]


@functools.cache
def end_as_go(pattern: str) -> str:
    """Return a pattern whose $ is the end of the text; Python's is also the place before a line break at the end."""
    return _DOLLAR.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern)
