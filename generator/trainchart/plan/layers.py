"""Merge layers of defaults under a spec, and remember for every value which layer, file and line it came from.

Mappings merge key by key; lists and all else are replaced whole. A key with a plus behind it (`tolerations+`) adds to
the list of the layers below instead: an entry replaces the one of the same `name`, and all others go to the end. Under
`roles` and `volumes` a layer's key "*" holds for every entry that the model has. Under `strategies` a layer of defaults
has more of them for models of one strategy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainchart.errors import Problem, SpecError
from trainchart.plan.strategies import STRATEGIES
from trainchart.spec.document import Document, Origin, Path

BUILTIN_LAYER = "built-in"
ANY_ENTRY = "*"
STRATEGY_SECTION = "strategies"
APPEND_MARK = "+"
"""Stands behind a key whose list is added to the list of the layers below."""
_NODE_LIMIT = 200_000
"""No completed spec is as large as this; many keys under "*" of many volumes are."""
_ENTRY_SECTIONS = ("roles", "volumes")
_ENTRY_PATHS: tuple[Path, ...] = tuple((section,) for section in _ENTRY_SECTIONS)


@dataclass(frozen=True)
class Setting:
    """A value that a layer gives a key, and where it stands."""

    value: Any
    origin: Origin
    extended: bool = False
    """Whether the stronger layer added to the list, instead of replacing the value."""


@dataclass
class Merged:
    """The tree that all layers make together; `origins` knows every node of it."""

    tree: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Origin] = field(default_factory=dict)
    overridden: dict[Path, tuple[Setting, ...]] = field(default_factory=dict)
    """What stronger layers replaced or added to, by path, the strongest first."""


def merge_layers(defaults: Sequence[Document], spec: Document) -> Merged:
    """Merge `spec` over `defaults`, which are given from the weakest to the strongest.

    Raises:
        SpecError: a key with a plus has no list behind it.
    """
    entries = {section: _entries(section, spec.tree) for section in _ENTRY_SECTIONS}
    merged = Merged()
    for layer in defaults:
        merged.origins.setdefault((), layer.origins[()])
        own: Path = (STRATEGY_SECTION, str(spec.tree.get("strategy")))
        for base in ((), own):
            for source, target in _expansions(_value_at(layer.tree, base) or {}, entries):
                _merge(merged, layer, (*base, *source), target)
                _require_moderate(merged, layer)
    _merge(merged, spec, (), ())
    for section, names in entries.items():
        if isinstance(spec.tree.get(section, {}), dict):
            kept = merged.tree.setdefault(section, {})
            for name in names:
                kept.setdefault(name, {})
    merged.origins[()] = spec.origins[()]
    return merged


def _require_moderate(merged: Merged, layer: Document) -> None:
    """Refuse a layer that "*" makes huge. Raises SpecError."""
    if len(merged.origins) > _NODE_LIMIT:
        what = f"more than {_NODE_LIMIT} keys and entries, counting those of * for every role and volume"
        problem = Problem(what, layer.origins[()].file)
        raise SpecError("layers of defaults are too large", problems=(problem,))


def _entries(section: str, tree: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the entries of `section` that the model has: those it names and those its strategy requires."""
    named = tree.get(section)
    names = [str(name) for name in named] if isinstance(named, dict) else []
    strategy = STRATEGIES.get(str(tree.get("strategy")))
    if section == "roles" and strategy:
        names += [role for role in strategy.required if role not in names]
    return tuple(names)


def _expansions(tree: Mapping[str, Any], entries: Mapping[str, tuple[str, ...]]) -> list[tuple[Path, Path]]:
    """Return which node of a layer's tree goes where, so that "*" comes before the named entries."""
    others = sorted((key for key in tree if key not in (*_ENTRY_SECTIONS, STRATEGY_SECTION)), key=_is_append)
    moves: list[tuple[Path, Path]] = [((key,), (key,)) for key in others]
    for section in _ENTRY_SECTIONS:
        known = tree.get(section) or {}
        for name in entries[section]:
            moves += [((section, source), (section, name)) for source in (ANY_ENTRY, name) if source in known]
    return moves


def _merge(merged: Merged, layer: Document, source: Path, target: Path) -> None:
    """Merge the node of `layer` at `source` into the result at `target`."""
    node: Any = layer.tree
    for key in source:
        node = node[key]
    if target and _is_append(target[-1]):
        _append(merged, layer, source, (*target[:-1], str(target[-1]).removesuffix(APPEND_MARK)))
        return
    before = merged.origins.get(target)
    merged.origins[target] = layer.origins[source]
    if node is None and (isinstance(_value_at(merged.tree, target), dict) or target[:1] in _ENTRY_PATHS):
        node = {}  # `worker:` or `run:` with nothing behind it asks for every default
    if isinstance(node, dict):
        _container(merged, target)
        for key in sorted(node, key=_is_append):
            _merge(merged, layer, (*source, key), (*target, key))
        return
    parent = _container(merged, target[:-1])
    replaced = parent.get(target[-1])
    if isinstance(node, bool) and isinstance(replaced, dict) and "enabled" in replaced:
        replaced["enabled"] = node  # `tensorboard: true` is short for {enabled: true}
        merged.origins[(*target, "enabled")] = layer.origins[source]
        return
    if before is not None and target[-1] in parent:
        merged.overridden[target] = (Setting(replaced, before), *merged.overridden.get(target, ()))
    for path in _paths_below(replaced):
        merged.origins.pop((*target, *path), None)
    parent[target[-1]] = node
    for path in _paths_below(node):
        merged.origins[(*target, *path)] = layer.origins[(*source, *path)]


def _is_append(key: Any) -> bool:
    return str(key).endswith(APPEND_MARK)


def _append(merged: Merged, layer: Document, source: Path, target: Path) -> None:
    """Add the list of `layer` at `source` to the list of the result at `target`."""
    added = _value_at(layer.tree, source)
    if not isinstance(added, list):
        key = ".".join(map(str, source))
        problem = Problem(
            f"{key}: a key with a plus adds to a list, but its value is not a list",
            str(layer.origins[source]),
            f"write a list, or {key.removesuffix(APPEND_MARK)} to replace the value",
        )
        raise SpecError("layers of defaults cannot be merged", problems=(problem,))
    parent = _container(merged, target[:-1])
    below = parent.get(target[-1])
    entries = list(below) if isinstance(below, list) else []
    if target in merged.origins:
        setting = Setting(below, merged.origins[target], extended=isinstance(below, list))
        merged.overridden[target] = (setting, *merged.overridden.get(target, ()))
    places = {_identify(entry): place for place, entry in reversed(list(enumerate(entries)))}
    for index, entry in enumerate(added):
        place = places.setdefault(_identify(entry), len(entries))
        if place < len(entries) and entries[place] == entry:
            continue
        for path in ((), *_paths_below(entries[place])) if place < len(entries) else ():
            merged.origins.pop((*target, place, *path), None)
        entries[place : place + 1] = [entry]
        for path in ((), *_paths_below(entry)):
            merged.origins[(*target, place, *path)] = layer.origins[(*source, index, *path)]
    parent[target[-1]] = entries
    merged.origins[target] = layer.origins[source]


def _identify(entry: Any) -> str:
    """Return what two entries of a list have in common that are one: their name, else all of them."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    return json.dumps(["name", name] if name is not None else ["all", entry], sort_keys=True)


def _paths_below(node: Any) -> Iterator[Path]:
    """Yield the path of everything within a mapping or a list, from there on."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (key,)
        yield from ((key, *path) for path in _paths_below(value))


def _value_at(tree: Mapping[str, Any], path: Path) -> Any:
    """Return the value at `path`, or None where there is none."""
    node: Any = tree
    for key in path:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _container(merged: Merged, path: Path) -> dict[Any, Any]:
    """Return the mapping at `path` of the result, making it, and replacing what is no mapping."""
    node: dict[Any, Any] = merged.tree
    for key in path:
        if not isinstance(node.get(key), dict):
            node[key] = {}
        node = node[key]
    return node
