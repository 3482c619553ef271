"""Narrow a chart's schema and its ci/ values to what packs lock: helm install refuses what generation would. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from trainchart.json_documents import resolve_reference
from trainchart.kubernetes_yaml import dump_mapping, parse_mapping
from trainchart.packs.locks import LockedPath, find_values
from trainchart.plan.layers import ANY_ENTRY
from trainchart.render.schema import Schema
from trainchart.spec.section import LOCKED
from trainchart.spec.settings import POD_SETTINGS


def narrow_schema(schema: Schema, locks: tuple[LockedPath, ...]) -> Schema:
    """Return `schema` with the locked values as the only ones. Locks of what this chart has not are left out."""
    if not locks:
        return schema
    narrowed = copy.deepcopy(schema)
    required = []
    for locked in locks:
        # Roles refer to the pod settings at the top, and may leave all of them out: what the top needs stands apart.
        is_shared = locked.path[0] in POD_SETTINGS
        is_required = locked.is_one_value and not is_shared
        _narrow(narrowed, locked.path, _constrain(locked), schema, is_required=is_required)
        if locked.is_one_value and is_shared:
            required.append(_require(locked.path))
    return {**narrowed, "allOf": required} if required else narrowed


def drop_refused_values(text: str, locks: tuple[LockedPath, ...]) -> str:
    """Return a values file without what the locks refuse; unchanged where they refuse nothing."""
    values = parse_mapping(text)
    refused = [
        path
        for locked in locks
        for place in locked.places()
        for path, value in find_values(values, place)
        if not locked.lock.allows(value)
    ]
    for path in refused:
        node: Any = values
        for key in path[:-1]:
            node = node[key]
        node.pop(path[-1], None)
    return dump_mapping(values) if refused else text


def _narrow(node: Schema, path: tuple[str, ...], constraint: Schema, root: Schema, *, is_required: bool) -> None:
    """Add `constraint` to what `path` names below `node`, beside any $ref: messages keep the key there."""
    if not path:
        node.update(copy.deepcopy(constraint))
        return
    name, *rest = path
    known = {**resolve_reference(node, root).get("properties", {}), **node.get("properties", {})}
    is_open = resolve_reference(node, root).get("additionalProperties", True) is not False
    for each in known if name == ANY_ENTRY else [name] if name in known or is_open else []:
        below = node.setdefault("properties", {}).setdefault(each, {})
        _narrow(below, tuple(rest), constraint, root, is_required=is_required)
        if is_required:
            node["required"] = sorted({*node.get("required", ()), each})


def _constrain(locked: LockedPath) -> Schema:
    """Return the keywords of a lock, for values as Helm delivers them: what looks like an integer arrives as one."""
    lock = locked.lock
    message = f"; {lock.message}" if lock.message else ""
    about = {"description": f"{LOCKED}{locked.origin.layer}: only {lock}{message}"}
    if lock.allowed is None:
        bounds = {"minimum": lock.minimum, "maximum": lock.maximum}
        return {**about, **{key: bound for key, bound in bounds.items() if bound is not None}}
    return {**about, "enum": [form for value in lock.allowed for form in _forms(value)]}


def _forms(value: Any) -> list[Any]:
    if isinstance(value, str) and value.isdecimal():
        return [value, int(value)]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value, str(value)]
    return [value]


def _require(path: tuple[str, ...]) -> Schema:
    """Return a schema that requires everything on the way to `path`."""
    schema: dict[str, Any] = {}
    for name in reversed(path):
        schema = {"required": [name], **({"properties": {name: schema}} if schema else {})}
    return schema


def narrow_files(files: Mapping[str, bytes], locks: tuple[LockedPath, ...]) -> dict[str, bytes]:
    """Return a chart's files with ci/ values that its narrowed schema accepts."""
    return {
        path: drop_refused_values(content.decode(), locks).encode() if path.startswith("ci/") and locks else content
        for path, content in files.items()
    }
