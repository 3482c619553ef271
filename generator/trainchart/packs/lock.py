"""The lock of a project's packs: which content each source stands for, until the next update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.section_file import parse_section
from trainchart.spec.section import Section

_HEADER = "# Written by `trainchart pack update`: the content of packs from repositories. Commit it; do not edit it.\n"


class LockedPack(Section):
    """The content that a source stands for."""

    source: str
    """The source as the project file or a pack names it, in one line."""
    name: str
    """Name of the pack."""
    version: str
    """Version of the pack."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Hash of the pack's files, names and contents."""


class LockFile(Section):
    """All locked packs."""

    api_version: Literal["trainchart/v1"]
    """Version of the format."""
    kind: Literal["Lock"]
    """Kind of file."""
    packs: list[LockedPack]
    """One entry for each source."""


def parse_pack_lock(text: str, file: str) -> dict[str, LockedPack]:
    """Return the packs that the lock in `text` holds, by their source.

    Raises:
        SpecError: it was damaged, with the line.
    """
    return {pack.source: pack for pack in parse_section(text, file, LockFile, "lock of packs").packs}


def dump_pack_lock(packs: Iterable[LockedPack]) -> str:
    """Return the text of the lock file."""
    entries = [pack.model_dump() for pack in sorted(packs, key=lambda pack: pack.source)]
    return _HEADER + dump_mapping({"apiVersion": "trainchart/v1", "kind": "Lock", "packs": entries})
