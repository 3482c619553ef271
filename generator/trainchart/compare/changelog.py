"""What a new version says of itself: an entry of the changelog, what to do when upgrading, a list for Artifact Hub."""

from __future__ import annotations

from trainchart.compare.chart import ChartChanges
from trainchart.compare.effect import Effect
from trainchart.compare.version import Bump
from trainchart.kubernetes_yaml import dump_mapping

_HEAD = "# Changelog\n"
_TITLES = {Bump.major: "Breaking", Bump.minor: "Added", Bump.patch: "Changed"}
_KINDS = {Bump.major: "removed", Bump.minor: "added", Bump.patch: "changed"}
"""Artifact Hub's words."""
_CLAIM = "PersistentVolumeClaim"
FIRST = "First published version."


def build_entry(version: str, changes: ChartChanges | None, date: str) -> str:
    """Return the entry of `version`; `changes` is None for the first one, and `date` empty where none is known."""
    lines = [f"## {version} - {date}" if date else f"## {version}", ""]
    if changes is None:
        return "\n".join([*lines, FIRST, ""])
    for bump, words in changes.reasons.items():
        lines += [f"### {_TITLES[bump]}", "", *(f"- {word}" for word in words), ""]
    upgrading = _upgrading(changes)
    return "\n".join([*lines, *(["### Upgrading", "", *upgrading, ""] if upgrading else [])])


def add_to_changelog(changelog: str, entry: str) -> str:
    """Return the changelog with a new entry on top."""
    older = changelog.removeprefix(_HEAD).lstrip("\n")
    return "\n".join([_HEAD, entry, older]).rstrip("\n") + "\n"


def list_changes(changes: ChartChanges | None) -> str:
    """Return the value of the annotation artifacthub.io/changes."""
    if changes is None:
        return dump_changes([("added", FIRST)])
    return dump_changes([(_KINDS[bump], word) for bump, words in changes.reasons.items() for word in words])


def dump_changes(changes: list[tuple[str, str]]) -> str:
    """Return a list of changes, each of a kind, as Artifact Hub reads it."""
    found = [{"kind": kind, "description": word} for kind, word in changes]
    _, _, listed = dump_mapping({"changes": found}).partition("\n")
    return "\n".join(line.removeprefix("  ") for line in listed.splitlines()) + "\n"


def _upgrading(changes: ChartChanges) -> list[str]:
    objects = [change for some in (changes.objects or {}).values() for change in some]
    rejected = sorted({f"{c.kind} {c.lasting_name}" for c in objects if c.effect is Effect.rejected})
    restarted = any(change.effect is Effect.restart for change in objects)
    lines = []
    if Bump.major in changes.reasons:
        lines.append(
            "- Remove values that no longer exist from your values files; correct those that are no longer accepted."
        )
    if rejected:
        lines.append(
            f"- Kubernetes refuses to change {', '.join(rejected)} (as named in a release called `release`). Install a "
            "new release, or delete these objects first; a StatefulSet with `kubectl delete --cascade=orphan`."
        )
    if any(name.startswith(_CLAIM) for name in rejected):
        lines.append(f"- Deleting a {_CLAIM} deletes its data: copy the checkpoints first.")
    if restarted:
        lines.append(
            "- An upgrade restarts the training from its last checkpoint, unless `run.onChange` is `finish-first`."
        )
    return lines
