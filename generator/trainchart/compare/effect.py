"""What an upgrade from one rendering to another does to each object, as the API server and the controllers see it.

tests/cluster/test_change_effects.py asks a real API server whether that is true.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainchart.check.immutable import find_differences, find_rejections
from trainchart.check.objects import HOOK_ANNOTATION, is_hook, mapping_at, namespace_of
from trainchart.check.pod_templates import kubernetes_kind
from trainchart.compare.normal import normal_document
from trainchart.helm.rendering import Manifest, Rendering
from trainchart_runtime.contract import RESOURCE_POLICY_ANNOTATION

_HASH = re.compile(r"-[0-9a-f]{8}$")
"""How names of our objects end whose content is in their name."""
_STATEFUL_SET = "StatefulSet"
_KEPT = {("Service", "spec.clusterIP")}
"""Fields of a kind that the API server takes over from the object that is there, where an update leaves them out."""


class Effect(enum.IntEnum):
    """What becomes of an object, the worst last."""

    none = 0
    """Nothing but labels and annotations of the object itself, or another spelling of the same."""
    applied = 1
    """Changed, created or deleted, and no pod of the training is restarted."""
    restart = 2
    """Pods of the training are recreated; the run controller does it at once, otherwise the user who deletes them."""
    rejected = 3
    """The API server refuses the update, and with it the upgrade."""

    @property
    def text(self) -> str:
        """Return the effect in the words of the documentation."""
        return _TEXTS[self]


_TEXTS = {
    Effect.none: "no effect",
    Effect.applied: "applied in place",
    Effect.restart: "restarts training",
    Effect.rejected: "rejected by Kubernetes (immutable)",
}


class Fate(enum.StrEnum):
    changed = "changed"
    added = "added"
    removed = "removed"


@dataclass(frozen=True)
class FieldChange:
    """A place in an object and what stands there before and after; None for nothing."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ObjectChange:
    """An object that two renderings do not have alike."""

    kind: str
    name: str
    fate: Fate
    effect: Effect
    fields: tuple[FieldChange, ...] = ()

    @property
    def lasting_name(self) -> str:
        """Return the name without a hash of the content."""
        return _HASH.sub("", self.name)


def find_changes(
    before: Rendering, after: Rendering, *, without: Collection[tuple[str, str]] = ()
) -> tuple[ObjectChange, ...]:
    """Return every object that differs, the worst effect first, then by kind and name.

    `without` has kinds with paths of fields that do not count, since something else sets them.
    """
    old, new = _by_identity(before), _by_identity(after)
    found = (_compare(old.get(key), new.get(key), without) for key in {*old, *new})
    changes = [change for change in found if change is not None]
    return tuple(sorted(changes, key=lambda change: (-change.effect, change.kind, change.name, change.fate)))


def _by_identity(rendering: Rendering) -> dict[tuple[object, ...], Manifest]:
    found: dict[tuple[object, ...], Manifest] = {}
    numbers = Counter[tuple[object, ...]]()
    # Of several objects with one name, those of the last templates are compared with each other.
    for manifest in sorted(rendering.manifests, key=lambda each: (each.source, _hook_of(each)), reverse=True):
        # Hooks may have the name of an object of the release, and are none.
        place = namespace_of(manifest, rendering), manifest.name, is_hook(manifest)
        key = _group(manifest), manifest.kind, *place
        found[*key, numbers[key]] = manifest
        numbers[key] += 1
    return found


def _hook_of(manifest: Manifest) -> str:
    return str(mapping_at(manifest.document, "metadata", "annotations").get(HOOK_ANNOTATION, ""))


def _group(manifest: Manifest) -> str:
    return str(manifest.document.get("apiVersion", "")).rpartition("/")[0]


def _compare(old: Manifest | None, new: Manifest | None, without: Collection[tuple[str, str]]) -> ObjectChange | None:
    present = new or old
    if present is None:
        return None
    if old is None or new is None:
        fate = Fate.removed if new is None else Fate.added
        return ObjectChange(present.kind, present.name, fate, _effect_of_fate(present, fate))
    before, after = normal_document(old), normal_document(new)
    found = (FieldChange(path.removeprefix("."), *values) for path, *values in find_differences("", before, after))
    fields = tuple(
        field
        for field in found
        if (old.kind, field.path) not in without
        and (field.after is not None or (kubernetes_kind(old), field.path) not in _KEPT)
    )
    if not fields:
        return None
    effect = _effect(replace(old, document=before), replace(new, document=after), fields)
    return ObjectChange(old.kind, old.name, Fate.changed, effect, fields)


def _effect_of_fate(manifest: Manifest, fate: Fate) -> Effect:
    if is_hook(manifest):
        return Effect.none
    if fate is Fate.removed:
        if mapping_at(manifest.document, "metadata", "annotations").get(RESOURCE_POLICY_ANNOTATION) == "keep":
            return Effect.none
        # Its pods end, and those of the other roles are told of another cluster.
        return Effect.restart if manifest.kind == _STATEFUL_SET else Effect.applied
    return Effect.applied


def _effect(old: Manifest, new: Manifest, fields: tuple[FieldChange, ...]) -> Effect:
    if is_hook(old) or is_hook(new):
        return Effect.none
    if any(True for _ in find_rejections(old, new)):
        return Effect.rejected
    paths = [field.path for field in fields]
    if old.kind == _STATEFUL_SET and any(_is_below(path, "spec.template") for path in paths):
        return Effect.restart
    return Effect.none if all(_is_below(path, "metadata") for path in paths) else Effect.applied


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith((f"{top}.", f"{top}["))


def removed_names(changes: Mapping[str, tuple[ObjectChange, ...]]) -> Iterator[str]:
    """Yield what objects are called that have gone in some rendering, renamed ones included; hashes do not count."""
    found = set()
    for some in changes.values():
        added = {(change.kind, change.lasting_name) for change in some if change.fate is Fate.added}
        found |= {
            (change.kind, change.lasting_name)
            for change in some
            if change.fate is Fate.removed and (change.kind, change.lasting_name) not in added
        }
    yield from (f"{kind} {name}" for kind, name in sorted(found))
