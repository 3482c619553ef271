"""What a value of the spec is expected to be, in words: for what pydantic would say with its own terms or a pattern.

Used by typed.py alone. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainchart.spec.model import HYPERPARAMETER_PATTERN, NAME_PATTERN
from trainchart.spec.section import OBJECT_NAME_PATTERN

_NUMBERS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_KINDS: Mapping[str, str] = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "too_short": "a list that is not empty",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
}
_PATTERNS: Mapping[str, str] = {
    NAME_PATTERN: "at most 40 lower-case letters, digits and dashes, starting with a letter",
    HYPERPARAMETER_PATTERN: "letters and digits, starting with a lower-case letter, such as learningRate",
    OBJECT_NAME_PATTERN: "a name in Kubernetes: lower-case letters, digits, dashes and dots",
}
_FIELDS: Mapping[str, str] = {
    "framework.tensorflow": "a version in quotes, such as '2.21.0'",
    "mountPath": "an absolute path without colons, such as /checkpoints",
    "key": "a key of a Secret: letters, digits, dashes, underscores and dots",
    "uri": "an address such as s3://bucket/folder",
    "path": "a path that starts with /",
    "digest": "sha256: and 64 hexadecimal digits",
    "repository": "registry and name in lower case, without a tag, such as registry.example.com/ml/mnist",
    "image": "an image with its tag or digest, such as registry.example.com/ml/mnist:1.0.0",
    "resourceName": "an extended resource, such as nvidia.com/gpu",
}
"""By the last words of the key."""


def expect(kind: str, key: str, given: Any, context: Mapping[str, Any], message: str) -> str:
    """Return the hint on what `key` is expected to be: `kind`, `context` and `message` are pydantic's."""
    if kind == "list_type":
        parts = given.split() if isinstance(given, str) else []
        return "expected a list" + (f": [{', '.join(parts)}]" if parts else "")
    if kind == "string_pattern_mismatch":
        fields = (words for name, words in _FIELDS.items() if f".{key}".endswith(f".{name}"))
        words = _PATTERNS.get(str(context.get("pattern"))) or next(fields, "")
        return f"expected {words}" if words else f"expected a string that matches the pattern {context.get('pattern')}"
    if kind in _KINDS:
        return f"expected {_KINDS[kind].format(**context)}{_without_quotes(kind, given)}"
    return message.replace("Input should", "the value should")


def expect_mapping(key: str, given: Any, spelling: str) -> str:
    """Return the hint on a value that is no mapping: of a hyperparameter, people write the default alone."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    if key.startswith("hyperparameters.") and key.count(".") == 1 and type(given) in kinds:
        return f"write {key.partition('.')[2]}: {{type: {kinds[type(given)]}, default: {spelling or given}}}"
    return "expected a mapping of keys to values"


def expect_member(key: str, given: Any, spelling: str) -> str:
    """Return the hint on a value that may be of several types, and is of none of them."""
    name = key.rpartition(".")[2]
    if key.startswith("hyperparameters.") and name in _NUMBERS:
        return f"expected a finite number{_without_quotes('float_type', given)}"
    if key.startswith("hyperparameters.") and name == "default":
        return "expected a finite number, a string, true or false"
    return "expected a string or a number" + (f'; if it is a string, quote it: "{spelling}"' if spelling else "")


def _without_quotes(kind: str, given: Any) -> str:
    """Return the advice to leave out quotes, where they alone make the value a text."""
    patterns = {"int_type": r"-?\d+", "float_type": r"-?\d+(\.\d*)?", "bool_type": "true|false"}
    is_quoted = isinstance(given, str) and kind in patterns and re.fullmatch(patterns[kind], given)
    return f"; write {given}" if is_quoted else ""
