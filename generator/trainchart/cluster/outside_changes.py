"""Reads what was changed about a StatefulSet's pods after it was made, and by what: the API server keeps it. Pure.

Helm's own record would say what it was before, but lies in a Secret, which those on call seldom may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.json_documents import parse_json
from trainchart.reports.report import OutsideChange
from trainchart_runtime.pod_problems import parse_time

_SHOWN = ("resources", "image")
"""Fields whose values are shown: others, such as env, may hold secrets."""
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""kubectl rollout restart changes no more than this annotation."""


def find_outside_changes(each: Object) -> tuple[OutsideChange, ...]:
    """Return the changes of a StatefulSet's pod template by others than what applies the release, oldest first."""
    found = section(each, "metadata").get("managedFields")
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    template = section(each, "spec", "template")
    changes = []
    for entry in entries:
        owned = section(entry, "fieldsV1", "f:spec")
        # What applies the release owns the selector, which cannot be changed later.
        if entry.get("subresource") or "f:selector" in owned:
            continue
        fields = [
            words for path, value in _walk(section(owned, "f:template"), template, ()) for words in _say(path, value)
        ]
        if fields:
            who, at = str(entry.get("manager") or "?"), parse_time(entry.get("time"))
            changes.append(OutsideChange(name_of(each), who, at, tuple(fields)))
    return tuple(sorted(changes, key=lambda change: change.at))


def _walk(fields: Mapping[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the present value of every field in a tree of managed fields."""
    for key, below in fields.items():
        kind, _, name = key.partition(":")
        if kind not in ("f", "k") or not isinstance(below, Mapping):
            continue
        child, step = _step(kind, name, value)
        inner = {inner_key: each for inner_key, each in below.items() if inner_key != "."}
        if inner:
            yield from _walk(inner, child, (*path, step))
        else:
            yield (*path, step), child


def _step(kind: str, name: str, value: Any) -> tuple[Any, str]:
    """Return what lies below `value` in a field, or in the item of a list that has these keys; and its name."""
    if kind == "f":
        return (value.get(name) if isinstance(value, Mapping) else None), name
    try:
        keys = parse_json(name)
    except ValueError:
        return None, name
    keys = keys if isinstance(keys, dict) else {}
    items: Sequence[Any] = value if isinstance(value, list) else ()
    fitting = (item for item in items if isinstance(item, Mapping) and keys.items() <= item.items())
    return next(fitting, None), str(next(iter(keys.values()), name))


def _say(path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Yield a field as people write it, with its value where that is no secret."""
    if _RESTARTED in path:
        return
    short = [step for step in path if step not in ("spec", "containers")]
    is_shown = isinstance(value, (str, int)) and any(step in _SHOWN for step in short)
    yield ".".join(short) + (f"={value}" if is_shown else "")
