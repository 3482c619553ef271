"""JSON that others have written: text whose faults are ValueErrors, and schemas whose references are followed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any


def parse_json(
    text: str | bytes, *, are_keys_unique: bool = False, keep_numbers: bool = False, takes_nan: bool = False
) -> Any:
    """Return what a text of JSON says, with `keep_numbers` its numbers as they are written.

    Raises ValueError where it is none to other readers (bytes that are not UTF-8 or begin with a BOM, NaN and Infinity
    unless `takes_nan`), or nested deeper than Python follows; with `are_keys_unique` also where an object has a key
    twice, of which readers take one or the other.
    """
    text = text.decode() if isinstance(text, bytes) else text
    numbers = str if keep_numbers else None
    try:
        pairs = _unique if are_keys_unique else None
        constants = None if takes_nan else _refuse
        return json.loads(
            text, object_pairs_hook=pairs, parse_int=numbers, parse_float=numbers, parse_constant=constants
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:
        if "set_int_max_str_digits" in str(error):
            raise ValueError("it contains a number with too many digits") from error
        raise


def is_same(one: Any, other: Any) -> bool:
    """Say whether two values are the same in JSON and YAML: to Python's `==`, true is 1."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return len(one) == len(other) and all(key in other and is_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def encode_value(value: Any) -> str:
    """Return a text of a value that no other value has."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _refuse(constant: str) -> Any:
    raise ValueError(f"it holds {constant}, which is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise ValueError(f"it has the key {twice!r} twice in one object")
    return found


if TYPE_CHECKING:
    # Python 3.8, which helper pods may have, cannot express it.
    Schema = Mapping[str, Any]


_REFERENCES_FOLLOWED = 32
"""From one to the next: each takes as long as all before it, and no author needs so many."""


def resolve_reference(node: Any, root: Schema, *, until: str = "") -> Any:
    """Return `node` with a $ref into `root` replaced by what is there; nothing else is ever looked up.

    What stands beside the reference holds as well; of properties, key by key. A reference that leads nowhere is an
    empty schema, and so is one that leads back to itself, or on and on. One that begins with `until` is left as it is.
    """
    seen: set[str] = set()
    while isinstance(node, Mapping) and isinstance(reference := node.get("$ref"), str) and reference.startswith("#"):
        if until and reference.startswith(until):
            break
        if reference in seen or len(seen) == _REFERENCES_FOLLOWED:
            return {}
        seen.add(reference)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        node = _add(_look_up(reference, root), beside)
    return node


def _look_up(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in reference.split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, Mapping) else {}
    return found


def _add(found: Any, beside: Schema) -> Any:
    if not beside or not isinstance(found, Mapping):
        return found
    added = {**found, **beside}
    below, more = found.get("properties"), beside.get("properties")
    if isinstance(below, Mapping) and isinstance(more, Mapping):
        added["properties"] = {**below, **{name: _beside(below.get(name), schema) for name, schema in more.items()}}
    return added


def _beside(found: Any, more: Any) -> Any:
    return {**found, **more} if isinstance(found, Mapping) and isinstance(more, Mapping) else more
