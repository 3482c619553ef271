"""Merging values as the helm program does: files in order, then JSON sets, sets and string sets.

Pure. The SDK parses one --set expression on its own, while Helm parses it into the values collected so far,
which matters for list indexes: `--set env[1].value=x` keeps env[0] of a values file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainchart.helm.rendering import merge_maps

SetParser = Callable[[str], dict[str, Any]]
"""Parses one --set, --set-string or --set-json expression into nested values."""


def merge_set(base: Mapping[str, Any], expression: str, parse: SetParser, *, is_json: bool = False) -> dict[str, Any]:
    """Return `base` with one set expression applied to it."""
    leaves = list(_list_leaves("", base, expression, in_list=False))
    if "[" not in expression and not any(_is_entered(path, leaf, expression) for path, leaf in leaves):
        return merge_maps(base, parse(expression))
    # The lists of `base` go in front of the expression, with a stand-in for every leaf: Helm's own parser
    # does the index work, and afterwards each stand-in becomes the leaf again, type and all.
    stand_ins: dict[str, Any] = {}
    prefix: list[str] = []
    for path, leaf in leaves:
        name = f"trainchart-stand-in-{len(stand_ins)}"
        stand_ins[name] = leaf
        prefix.append(f"{path}={json.dumps(name) if is_json else name}")
    overlay = parse(",".join([*prefix, expression]))
    return merge_maps(base, _restore(overlay, base, stand_ins))


def _list_leaves(path: str, value: Any, expression: str, *, in_list: bool) -> Iterator[tuple[str, Any]]:
    """Yield path and value of all leaves in lists, and of what an expression may enter as another type than it has.

    Helm refuses such an expression. _restore brings back the maps and lists that have no leaves.
    """
    if in_list and value is None and f"{path}[" in expression:
        return  # the only other type that Helm lets become a list
    if path and _is_entered(path, value, expression):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            escaped = "".join(f"\\{char}" if char in "\\,.=[]" else char for char in str(key))
            yield from _list_leaves(f"{path}.{escaped}" if path else escaped, item, expression, in_list=in_list)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _list_leaves(f"{path}[{number}]", item, expression, in_list=True)
    elif in_list:
        yield path, value


def _is_entered(path: str, value: Any, expression: str) -> bool:
    """Say whether an expression may set a key of what is no map, or an item of what is no list."""
    is_map, is_list = isinstance(value, dict), isinstance(value, list)
    return (not is_map and f"{path}." in expression) or (not is_list and f"{path}[" in expression)


def _restore(value: Any, base: Any, stand_ins: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        below = base if isinstance(base, dict) else {}
        restored = {key: _restore(item, below.get(key), stand_ins) for key, item in value.items()}
        return restored | {key: item for key, item in below.items() if key not in value and _is_empty(item)}
    if isinstance(value, list):
        beside = base if isinstance(base, list) else []
        padded = [*beside[: len(value)], *[None] * (len(value) - len(beside))]
        restored_items = [_restore(item, old, stand_ins) for item, old in zip(value, padded, strict=True)]
        tail = beside[len(value) :]
        return restored_items + (tail if all(map(_is_empty, tail)) else [])
    if value is None and _is_empty(base):
        return base
    return stand_ins.get(value, value) if isinstance(value, str) else value


def _is_empty(value: Any) -> bool:
    """Say whether `value` holds maps and lists only, and so no leaf."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return isinstance(value, list) and all(map(_is_empty, value))
