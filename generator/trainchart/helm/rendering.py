"""What a Helm engine takes and gives, as plain data: shared by checks, local runs and the engines.

No engine lives here; see helm/io/choose.py for those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ValueOverrides:
    """What a user adds to a chart's values, with Helm's meaning and order: files first, then the sets."""

    files: tuple[tuple[str, str], ...] = ()
    """(name for messages, YAML text) of every --values file, later ones win."""
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    set_jsons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manifest:
    """One rendered Kubernetes object and the template it came from (relative to the chart folder)."""

    source: str
    document: Mapping[str, Any]
    line: int = 0
    """Where it starts in `source`, counted from 1; 0 where it was rendered: a template has other lines."""

    @property
    def kind(self) -> str:
        return str(self.document.get("kind", ""))

    @property
    def name(self) -> str:
        metadata = self.document.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


@dataclass(frozen=True)
class Rendering:
    """All objects that `helm install RELEASE` would create (hooks included), by source, kind and name, and the notes.

    Helm's output does not keep the order inside a file.
    """

    release: str
    namespace: str
    manifests: tuple[Manifest, ...]
    texts: Mapping[str, str]
    """Raw rendered text per template file, for line-based checks."""
    notes: str = ""


@dataclass(frozen=True)
class LintMessage:
    """One message of `helm lint`: severity is "info", "warning" or "error"."""

    severity: str
    path: str
    message: str


@dataclass(frozen=True)
class ReleaseTexts:
    """The objects of a release as Helm keeps and prints them: after post-renderers, where there were any."""

    manifest: str = ""
    hooks: tuple[tuple[str, str], ...] = ()
    """(path of the template, text) of each."""


def read_release_texts(release: Mapping[str, Any]) -> ReleaseTexts:
    """Return the objects of a release from Helm's JSON of it. Raises what Python does for another shape."""
    hooks = tuple((str(hook["path"]), str(hook["manifest"])) for hook in release.get("hooks") or ())
    return ReleaseTexts(str(release.get("manifest") or ""), hooks)


def merge_maps(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `overlay` laid over it: maps are merged, all else is replaced, null included."""
    merged = dict(base)
    for key, value in overlay.items():
        old = merged.get(key)
        merged[key] = merge_maps(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
