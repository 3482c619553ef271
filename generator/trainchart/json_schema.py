"""References inside of a JSON Schema. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def resolve_reference(node: Any, root: Schema, *, until: str = "") -> Any:
    """Return `node` with a $ref into `root` replaced by what is there; nothing else is ever looked up.

    What stands beside the reference holds as well; of properties, key by key. A reference that leads nowhere is an
    empty schema, and so is one that leads back to itself. One that begins with `until` is left as it is.
    """
    seen: set[str] = set()
    while isinstance(node, Mapping) and isinstance(reference := node.get("$ref"), str) and reference.startswith("#"):
        if until and reference.startswith(until):
            break
        if reference in seen:
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
