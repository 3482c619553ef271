"""What many charts change, each kind of change once: a platform team reads one list, not one for each chart. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from trainchart.compare.chart import ChartChanges
from trainchart.compare.effect import Effect, Fate, FieldChange, ObjectChange
from trainchart.compare.version import Bump

CHART = "CHART"
"""Stands for the name of the chart in texts that several charts share."""
_HASHES = re.compile(r"(?<=-)[0-9a-f]{8}(?![0-9a-z])|(?<![0-9a-z])p[0-9a-f]{15}(?![0-9a-z])")
"""In names of our objects, and of a plan."""
_FATES = {Fate.added: " added", Fate.removed: " removed"}


@dataclass(frozen=True)
class Change:
    """One kind of change."""

    text: str
    effect: Effect
    """What it does to a release that is upgraded."""
    bump: Bump
    """The version that it asks for; none for what an object's values follow from."""
    lines: tuple[str, ...] = ()
    """The fields of an object, before (-) and after (+)."""


@dataclass(frozen=True)
class FleetChange:
    """A change, and the charts that have it."""

    change: Change
    charts: tuple[str, ...]


def group_changes(found: Mapping[str, ChartChanges]) -> tuple[FleetChange, ...]:
    """Return every change of the charts (name → changes) once: those of versions, then of objects, the worst first.

    Where the same fields change, it is one change, whatever objects of a chart they are in.
    """
    alike: dict[Change, list[tuple[str, str]]] = {}
    for name, changes in sorted(found.items()):
        for change in dict.fromkeys(_list_changes(name, changes)):
            key = replace(change, text="") if change.lines else change
            alike.setdefault(key, []).append((name, change.text))
    return tuple(sorted((_join(key, places) for key, places in alike.items()), key=_rank))


def _join(change: Change, places: list[tuple[str, str]]) -> FleetChange:
    """Return a change with all objects that it is in, and the charts of `places` (chart, objects)."""
    objects = dict.fromkeys(each for _, text in places for each in (text.split(", ") if change.lines else [text]))
    return FleetChange(replace(change, text=", ".join(objects)), tuple(dict.fromkeys(name for name, _ in places)))


def _rank(group: FleetChange) -> tuple[int, int, int, str]:
    change = group.change
    return -change.bump, -change.effect, -len(group.charts), change.text


def _list_changes(name: str, changes: ChartChanges) -> Iterator[Change]:
    """Yield what a chart changes; objects of which the same fields change alike are one change."""
    for bump, words in changes.reasons.items():
        yield from (Change(_generalize(word, name), Effect.none, bump) for word in words)
    alike: dict[tuple[Effect, str, tuple[str, ...]], list[str]] = {}
    for change in _join_replaced((changes.objects or {}).get("", ())):
        lines = tuple(line for field in change.fields for line in _field_lines(field, name))
        called = _generalize(f"{change.kind} {change.lasting_name}", name)
        alike.setdefault((change.effect, _FATES.get(change.fate, ""), lines), []).append(called)
    for (effect, fate, lines), objects in alike.items():
        yield Change(f"{', '.join(objects)}{fate}", effect, Bump.none, lines)


def _join_replaced(changes: tuple[ObjectChange, ...]) -> Iterator[ObjectChange]:
    """Yield the changes, and once an object that only has another hash of its content in its name."""
    removed = {(change.kind, change.lasting_name) for change in changes if change.fate is Fate.removed}
    added = {(change.kind, change.lasting_name) for change in changes if change.fate is Fate.added}
    for change in changes:
        is_replaced = (change.kind, change.lasting_name) in removed & added
        if is_replaced and change.fate is Fate.added:
            yield replace(change, fate=Fate.changed, fields=())
        elif not is_replaced:
            yield change


def _field_lines(field: FieldChange, name: str) -> Iterator[str]:
    """Yield path, old and new value; nothing where only a hash differs."""
    before, after = (_generalize(_dump(value), name) for value in (field.before, field.after))
    if before != after:
        yield field.path
        yield from [f"- {before}"] if field.before is not None else []
        yield from [f"+ {after}"] if field.after is not None else []


def _dump(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _generalize(text: str, name: str) -> str:
    """Return `text` without what is different in every chart: its name, and hashes of its content."""
    return _HASHES.sub("HASH", re.sub(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", CHART, text))
