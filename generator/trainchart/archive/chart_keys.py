"""The keys of Chart.yaml, and what Helm takes for one of them. Pure.

Helm reads its files as JSON is read in Go, where a key stands for every other that differs from it only in
upper and lower case: `Version` and one with a long s set the version as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CHART_KEYS = frozenset(
    [
        "annotations",
        "apiVersion",
        "appVersion",
        "condition",
        "dependencies",
        "deprecated",
        "description",
        "home",
        "icon",
        "keywords",
        "kubeVersion",
        "maintainers",
        "name",
        "sources",
        "tags",
        "type",
        "version",
    ]
)
INDEX_KEYS = frozenset(["checksum", "created", "digest", "engine", "removed", "tillerVersion", "url", "urls"])
"""What an entry of a repository's index has beside them."""
_LISTED_KEYS = {
    "dependencies": frozenset(
        ["alias", "condition", "enabled", "import-values", "name", "repository", "tags", "version"]
    ),
    "maintainers": frozenset(["email", "name", "url"]),
}


@dataclass(frozen=True)
class MistakenKey:
    """A key as it is written, and the one that Helm takes it for."""

    written: str
    meant: str

    def __str__(self) -> str:
        shown = self.written if self.written.isascii() else ascii(self.written)
        return f"the key {shown} is {self.meant} to Helm, and unknown to other readers"


def find_mistaken_key(data: Mapping[str, object], known: Iterable[str]) -> MistakenKey | None:
    """Return the first key of a mapping that is none of the known keys, but one of them to Helm."""
    folded = {key.casefold(): key for key in known}
    for key in data:
        meant = folded.get(str(key).casefold())
        if meant is not None and meant != key:
            return MistakenKey(str(key), meant)
    return None


def find_mistaken_chart_key(data: Mapping[str, object], further: Iterable[str] = ()) -> MistakenKey | None:
    """Return the first such key of a Chart.yaml, or of what holds `further` keys beside its own."""
    found = find_mistaken_key(data, {*CHART_KEYS, *further})
    for name, known in _LISTED_KEYS.items():
        items = data.get(name)
        for item in items if isinstance(items, list) else []:
            found = found or (find_mistaken_key(item, known) if isinstance(item, Mapping) else None)
    return found
