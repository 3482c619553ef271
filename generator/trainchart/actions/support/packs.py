"""The packs of a project: find and read what its project file names, and what those packs build on."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from trainchart.actions.support.project import Project, name_from_here
from trainchart.errors import SpecError, ToolError
from trainchart.host.files import read_tree
from trainchart.packs.pack import PACK_FILE, Pack, parse_pack
from trainchart.packs.project_file import PROJECT_FILE
from trainchart.packs.source import PackSource

_SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes; a pack is a few texts."""
_DEPTH_LIMIT = 20
"""Packs that build on each other; no organisation has as many."""


def read_packs(project: Project) -> tuple[Pack, ...]:
    """Return the packs of `project` from the weakest to the strongest: before each pack, those that it builds on.

    Raises:
        SpecError: a pack is not valid, builds on itself, or is named in two versions.
        ToolError: a pack is not there, or cannot be read.
    """
    reader = _Reader()
    for source in project.file.extends if project.file else ():
        reader.add(source, project.folder, name_from_here(project.folder / PROJECT_FILE))
    return tuple(reader.found.values())


def read_pack_folder(folder: Path) -> tuple[Pack, ...]:
    """Return the pack in `folder`, the last, after those that it builds on.

    Raises:
        SpecError, ToolError: as `read_packs` does.
    """
    reader = _Reader()
    reader.add(PackSource(path=str(folder)), Path(), Path())
    return tuple(reader.found.values())


@dataclass
class _Reader:
    """Reads packs depth first, each once."""

    found: dict[str, Pack] = field(default_factory=dict)
    """By name, in the order of their strength."""
    _open: list[str] = field(default_factory=list)
    """Names of the packs whose own packs are being read."""

    def add(self, source: PackSource, folder: Path, named_in: Path) -> None:
        """Read the pack that the file `named_in`, whose paths start at `folder`, names."""
        place = name_from_here(Path(os.path.normpath(folder / source.path)))
        if not place.is_dir():
            named = f"{named_in} names it as a pack; " if named_in != Path() else ""
            raise ToolError(f"{place} is not a folder", hint=f"{named}check the spelling")
        pack = parse_pack(read_tree(place, limit=_SIZE_LIMIT), str(place))
        if pack.name in self._open or len(self._open) > _DEPTH_LIMIT:
            chain = " → ".join((*self._open, pack.name))
            raise SpecError(f"the pack {pack.name} builds on itself: {chain}", hint=f"remove it from {named_in}")
        known = self.found.get(pack.name)
        if known is not None:
            if known.sha256 != pack.sha256:
                raise SpecError(
                    f"two packs are called {pack.name}: {known.title} and {pack.title}, named in {named_in}",
                    hint="give one of them another name, or let all name the same one",
                )
            return
        self._open.append(pack.name)
        for below in pack.extends:
            self._require_beside(below, place)
            self.add(below, place, place / PACK_FILE)
        self._open.pop()
        self.found[pack.name] = pack

    def _require_beside(self, source: PackSource, place: Path) -> None:
        """Refuse a pack that is neither in nor beside the one that names it: a pack reads nothing else."""
        target = Path(os.path.realpath(place / source.path))
        if not target.is_relative_to(os.path.realpath(place.parent)):
            raise ToolError(
                f"{place / PACK_FILE} builds on {source.path}, which is neither in nor beside {place}",
                hint="let the project file name that pack, or put it beside this one",
            )
