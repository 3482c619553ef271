"""What differs between two versions of a chart: what users may set, what becomes of objects, and the next version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.identity import CHANGELOG_FILE, compute_released_identity
from trainchart.archive.ignore import drop_ignored
from trainchart.compare.defaults import DefaultChange, find_changed_defaults
from trainchart.compare.effect import Effect, ObjectChange, find_changes, removed_names
from trainchart.compare.schema import KeyChange, Turn, compare_schemas
from trainchart.compare.version import Bump
from trainchart.helm.rendering import Rendering
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, parse_mapping

SCHEMA_FILE = "values.schema.json"
README_FILE = "README.md"
OWN_VALUES = "the chart with its own values"
"""Stands for the name of these values where a chart does not render with them."""
_VALUES_FILE = "values.yaml"
_FIELDS = {"description": "the description", "kubeVersion": "the range of Kubernetes versions"}


@dataclass(frozen=True)
class RenderedVersion:
    """A chart, and what it renders to with several sets of values; a set that it refuses has the reason instead."""

    version: str
    files: Mapping[str, bytes]
    renderings: Mapping[str, Rendering | str]
    """By the name of the values; "" are the chart's own."""


@dataclass(frozen=True)
class ChartChanges:
    """All that differs; empty where both charts are the same but for their version."""

    old_version: str
    keys: tuple[KeyChange, ...] = ()
    defaults: tuple[DefaultChange, ...] = ()
    """Values of values.yaml that both versions have, but not alike."""
    objects: Mapping[str, tuple[ObjectChange, ...]] | None = None
    """By the name of the values that were rendered, those without a change left out."""
    refused: Mapping[str, str] | None = None
    """Values that the old chart takes and the new one refuses, and why."""
    not_compared: Mapping[str, str] | None = None
    """Values that the old chart does not render with, and why: what an upgrade does with them is unknown."""
    files: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    """What Chart.yaml says otherwise, in words."""

    @property
    def effect(self) -> Effect:
        """Return the worst that an upgrade does."""
        found = [change.effect for changes in (self.objects or {}).values() for change in changes]
        return max(found, default=Effect.none)

    @property
    def effect_text(self) -> str:
        """Return the effect in the words of the documentation; unknown where nothing is found, and not all compared."""
        return "unknown" if self.not_compared and self.effect is Effect.none else self.effect.text

    @property
    def reasons(self) -> Mapping[Bump, tuple[str, ...]]:
        """Return what asks for a bump of each kind, in words."""
        objects = self.objects or {}
        rejected = sorted(
            {f"{c.kind} {c.lasting_name}" for some in objects.values() for c in some if c.effect is Effect.rejected}
        )
        major = [f"{key.subject} is gone" for key in self.keys if key.turn is Turn.removed]
        major += [f"{key.subject} accepts less: {key.detail}" for key in self.keys if key.turn is Turn.narrowed]
        major += [f"{name} is refused: {why}" for name, why in (self.refused or {}).items()]
        major += [f"{name} no longer exists, or has another name" for name in removed_names(objects)]
        major += [f"{name} cannot be changed in place" for name in rejected]
        minor = [f"{key.subject} is new" for key in self.keys if key.turn is Turn.added]
        minor += [f"{key.subject} accepts more: {key.detail}" for key in self.keys if key.turn is Turn.widened]
        patch = [change.text for change in self.defaults]
        patch += self.about
        # Files that follow from what is told already are not worth a line.
        told = {_VALUES_FILE} if self.defaults else set()
        told |= {README_FILE, CHART_FILE} if major or minor or patch else set()
        patch += [f"{path} differs" for path in self.files if path not in told]
        found = {Bump.major: tuple(major), Bump.minor: tuple(minor), Bump.patch: tuple(patch)}
        return {bump: words for bump, words in found.items() if words}

    @property
    def bump(self) -> Bump:
        """Return by how much the version must at least be raised."""
        return max(self.reasons, default=Bump.none)


def compare_versions(old: RenderedVersion, new: RenderedVersion) -> ChartChanges:
    """Return what differs between two versions of a chart."""
    files = _changed_files(old.files, new.files)
    # Chart.yaml differs by its version at least; only what an identity is made of counts.
    if set(files) <= {CHART_FILE} and compute_released_identity(old.files) == compute_released_identity(new.files):
        return ChartChanges(old.version)
    objects: dict[str, tuple[ObjectChange, ...]] = {}
    refused: dict[str, str] = {}
    not_compared: dict[str, str] = {}
    for name, before in old.renderings.items():
        after = new.renderings.get(name, "")
        if isinstance(before, str):
            not_compared[name] = before
        elif isinstance(after, str):
            refused[name or OWN_VALUES] = after
        elif changes := find_changes(before, after):
            objects[name] = changes
    defaults = _defaults(new.files)
    keys = compare_schemas(_schema(old.files), _schema(new.files), defaults)
    reported = {key.path for key in keys if key.turn in (Turn.added, Turn.removed)}
    return ChartChanges(
        old.version,
        keys=keys,
        defaults=tuple(find_changed_defaults(_defaults(old.files), defaults, without=reported)),
        objects=objects,
        refused=refused,
        not_compared=not_compared,
        files=files,
        about=tuple(_about(_chart_data(old.files), _chart_data(new.files))),
    )


def _chart_data(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    try:
        return parse_mapping(files.get(CHART_FILE, b"").decode("utf-8-sig"))
    except (UnicodeDecodeError, YamlError):
        return {}


def _about(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what users should know of the fields of Chart.yaml that differ."""
    if bool(old.get("deprecated")) != bool(new.get("deprecated")):
        yield "the chart is deprecated" if new.get("deprecated") else "the chart is no longer deprecated"
    for key, words in _FIELDS.items():
        if old.get(key) != new.get(key):
            yield f"{words} is now {json.dumps(new.get(key), ensure_ascii=False)}"


def _schema(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    """Return the schema of the values; one that takes anything where there is none."""
    try:
        schema = parse_json(files.get(SCHEMA_FILE, b"{}"))
    except ValueError:
        return {}
    return schema if isinstance(schema, dict) else {}


def _defaults(files: Mapping[str, bytes]) -> Mapping[str, Any]:
    try:
        return parse_mapping(files.get(_VALUES_FILE, b"").decode("utf-8-sig"))
    except (UnicodeDecodeError, YamlError):
        return {}


def _changed_files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> tuple[str, ...]:
    before, after = drop_ignored(old), drop_ignored(new)
    changed = sorted(path for path in {*before, *after} - {CHANGELOG_FILE} if before.get(path) != after.get(path))
    only_chart = [path for path in changed if path != CHART_FILE]
    # Chart.yaml always differs, by its version; it is named where nothing else says what has changed.
    return tuple(only_chart or changed)
