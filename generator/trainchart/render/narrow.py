"""Narrow a chart's schema and its ci/ values to what packs lock: helm install refuses what generation would. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from trainchart.kubernetes_yaml import dump_mapping, parse_mapping
from trainchart.packs.locks import UNSET, LockedPath, find_values
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.layers import ANY_ENTRY
from trainchart.render.schema import Schema
from trainchart.render.value_tree import build_value_tree, walk_leaves
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.section import LOCKED
from trainchart.spec.settings import POD_SETTINGS


def narrow_schema(schema: Schema, plan: ChartPlan, locks: tuple[LockedPath, ...]) -> Schema:
    """Return the `schema` of the plan's values with what locks allow as the only values."""
    if not locks:
        return schema
    narrowed = copy.deepcopy(schema)
    values = _list_shown_values(plan)
    required = []
    for locked in locks:
        constraint = _constrain(locked)
        for path in _expand(locked.path, plan):
            # Roles refer to the pod settings at the top, and may leave them out: what the top needs stands apart.
            is_shared = path[0] in POD_SETTINGS
            is_there = any(found for found in find_values(values, path))
            _narrow(narrowed, path, constraint, is_required=is_there and not is_shared)
            required += [_require(path)] if is_there and is_shared else []
        for place in locked.places():
            if place[0] == "roles" and locked.path[0] not in POD_SETTINGS and place != locked.path:
                unset = {**constraint, "enum": [*constraint["enum"], UNSET[locked.path[0]]]}
                for path in _expand(place, plan):
                    _narrow(narrowed, path, unset, is_required=False)
    return {**narrowed, "allOf": required} if required else narrowed


def narrow_family_schema(schema: Schema, values: Mapping[str, Any], locks: tuple[LockedPath, ...]) -> Schema:
    """Return the `schema` of the `values` of a family's chart with what locks allow as the only values."""
    narrowed = copy.deepcopy(schema)
    for locked in locks:
        # A number may be written as text where the family allows that, which no range holds for.
        kind = {"type": "integer"} if locked.lock.allowed is None else {}
        is_there = any(found for found in find_values(values, locked.path[1:]))
        _narrow(narrowed, locked.path[1:], {**_constrain(locked), **kind}, is_required=is_there)
    return narrowed


def _list_shown_values(plan: ChartPlan) -> dict[str, Any]:
    """Return what values.yaml says."""
    shown: dict[str, Any] = {}
    for leaf in walk_leaves(build_value_tree(plan)):
        if not leaf.is_unset:
            node = shown
            for key in leaf.path[:-1]:
                node = node.setdefault(key, {})
            node[leaf.path[-1]] = leaf.value
    return shown


def _expand(path: tuple[str, ...], plan: ChartPlan) -> list[tuple[str, ...]]:
    """Return the paths of this chart that `path`, with * for every role or volume, means; none of what it has not."""
    if path[0] not in ("roles", "volumes"):
        return [path]
    names = plan.roles if path[0] == "roles" else tuple(plan.spec.volumes)
    return [(path[0], name, *path[2:]) for name in names if path[1] in (ANY_ENTRY, name)]


def narrow_files(files: Mapping[str, bytes], locks: tuple[LockedPath, ...]) -> dict[str, bytes]:
    """Return a chart's files with ci/ values that its narrowed schema accepts."""
    return {
        path: _drop_refused_values(content.decode(), locks).encode() if path.startswith("ci/") and locks else content
        for path, content in files.items()
    }


def _drop_refused_values(text: str, locks: tuple[LockedPath, ...]) -> str:
    """Return a values file without what the locks refuse; unchanged where they refuse nothing."""
    values = parse_mapping(text)
    # Locks on values of families have their paths in the spec.
    tree: Any = {VALUES_KEY: values} if locks[0].path[0] == VALUES_KEY else values
    is_changed = False
    for locked in locks:
        for place in locked.places():
            for path, value in list(find_values(tree, place)):
                if not locked.lock.allows(value):
                    is_changed = True
                    parent: Any = tree
                    for key in path[:-1]:
                        parent = parent[key]
                    del parent[path[-1]]
    return dump_mapping(values) if is_changed else text


def _narrow(node: Schema, path: tuple[str, ...], constraint: Schema, *, is_required: bool) -> None:
    """Add `constraint` to what `path` names below `node`, beside any $ref: messages keep the key there."""
    for name in path:
        if is_required:
            node["required"] = sorted({*node.get("required", ()), name})
        node = node.setdefault("properties", {}).setdefault(name, {})
    _combine(node, constraint)


def _combine(node: Schema, constraint: Schema) -> None:
    """Let `node` allow what it and `constraint` allow both."""
    if "enum" in node and "enum" in constraint:
        known = {json.dumps(value, sort_keys=True) for value in node["enum"]}
        both = [value for value in constraint["enum"] if json.dumps(value, sort_keys=True) in known]
        constraint = {**constraint, "enum": both} if both else {**constraint, "enum": node["enum"], "not": {}}
    for bound, choose in (("minimum", max), ("maximum", min)):
        if bound in node and bound in constraint:
            constraint = {**constraint, bound: choose(node[bound], constraint[bound])}
    node.update(copy.deepcopy(constraint))


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
    if isinstance(value, str) and value.isdecimal() and str(int(value)) == value:
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
