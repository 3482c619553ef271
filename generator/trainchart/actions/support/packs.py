"""The packs of a project: find and read what its project file names, and what those packs build on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainchart.actions.support.pack_files import PACK_LIMIT, PACK_LOCK_FILE, SUFFIX, VENDOR, read_pack_files
from trainchart.actions.support.project import PROJECT_FILE, Project, name_from_here
from trainchart.archive.lock import hash_tree
from trainchart.errors import SpecError, ToolError
from trainchart.host.files import read_text
from trainchart.host.user_folders import find_user_folder
from trainchart.packs.lock import LockedPack, parse_pack_lock
from trainchart.packs.pack import PACK_FILE, Pack, parse_pack
from trainchart.packs.source import PackSource

_FETCH_AGAIN = "remove that file, then run: trainchart pack update --locked"
_DEPTH_LIMIT = 20
"""Packs that build on each other; no organisation has as many."""


@dataclass(frozen=True)
class PackContent:
    """The files of a pack of a repository, and where they lie on this machine."""

    files: Mapping[str, bytes]
    path: Path


Fetch = Callable[[PackSource, bool], PackContent]
"""Gives the content of a pack that is in a repository; told whether a file of the project names it."""


def read_packs(project: Project, fetch: Fetch | None = None) -> tuple[Pack, ...]:
    """Return the packs of `project` from the weakest to the strongest: before each pack, those that it builds on.

    Packs of repositories are those that the project's lock names, unless `fetch` gets them; nothing is downloaded.

    Raises:
        SpecError: a pack is not valid, builds on itself, or is named in two versions.
        ToolError: a pack is not there, or cannot be read.
    """
    reader = _Reader(fetch or _LockedPacks(project).find)
    for source in project.file.extends if project.file else ():
        reader.add(source, project.folder, name_from_here(project.folder / PROJECT_FILE))
    return tuple(reader.found.values())


def read_pack(path: Path, project: Project) -> tuple[Pack, ...]:
    """Return the pack in the folder or archive `path`, the last, after those that it builds on.

    Raises:
        SpecError, ToolError: as `read_packs` does.
    """
    reader = _Reader(_LockedPacks(project).find)
    reader.add(PackSource(path=str(path)), Path(), Path())
    return tuple(reader.found.values())


def read_lock(project: Project) -> dict[str, LockedPack]:
    """Return the locked packs of `project` by their source; none where there is no lock yet.

    Raises:
        SpecError: the lock was damaged.
    """
    path = name_from_here(project.folder / PACK_LOCK_FILE)
    return parse_pack_lock(read_text(path, limit=PACK_LIMIT), str(path)) if path.is_file() else {}


def cached_pack(sha256: str) -> Path:
    """Return where this user keeps the archive of a pack whose files have that hash."""
    return find_user_folder("XDG_CACHE_HOME", ".cache", os.environ) / "packs" / f"{sha256}{SUFFIX}"


def vendored_pack(project: Project, locked: LockedPack) -> Path:
    """Return where `project` keeps its copy of a locked pack."""
    return name_from_here(project.folder / VENDOR / f"{locked.name}-{locked.version}{SUFFIX}")


@dataclass
class _LockedPacks:
    """Finds the packs of repositories on this machine, by the lock of the project."""

    project: Project

    def find(self, source: PackSource, _is_own: bool) -> PackContent:
        """Return the content that the lock names. Raises ToolError where it is not on this machine, or another."""
        locked = read_lock(self.project).get(str(source))
        if locked is None:
            raise ToolError(f"{source} is not in {PACK_LOCK_FILE}", hint="run: trainchart pack update")
        vendored, cached = vendored_pack(self.project, locked), cached_pack(locked.sha256)
        path = vendored if vendored.is_file() else cached
        if not path.is_file():
            hint = "run: trainchart pack update --locked"
            raise ToolError(f"the pack {source} is not on this machine", hint=hint)
        try:
            files = read_pack_files(path)
        except ToolError as error:
            raise ToolError(f"{path} cannot be read: {error.message}", hint=_FETCH_AGAIN) from error
        if hash_tree(files) != locked.sha256:
            what = f"{path} is not the pack that {PACK_LOCK_FILE} names for {source}"
            raise ToolError(what, hint=_FETCH_AGAIN)
        return PackContent(files, path)


@dataclass
class _Reader:
    """Reads packs depth first, each once."""

    fetch: Fetch
    found: dict[str, Pack] = field(default_factory=dict)
    """By name, in the order of their strength."""
    _open: list[str] = field(default_factory=list)
    """Names of the packs whose own packs are being read."""
    _read: set[tuple[str, Path]] = field(default_factory=set)
    """What was named, and from which folder, and is read."""

    def add(self, source: PackSource, folder: Path, named_in: Path, *, is_own: bool = True) -> None:
        """Read the pack that the file `named_in`, whose paths start at `folder`, names.

        The file is the project's `is_own`, and else that of a downloaded pack.
        """
        if (str(source), folder) in self._read:
            return
        pack = self._read_remote(source, is_own) if source.is_remote else _read_local(source, folder, named_in)
        is_published = source.is_remote and not source.is_on_this_machine
        if pack.name in self._open or len(self._open) > _DEPTH_LIMIT:
            chain = " → ".join((*self._open, pack.name))
            raise SpecError(f"the pack {pack.name} builds on itself: {chain}", hint=f"remove it from {named_in}")
        known = self.found.get(pack.name)
        if known is not None:
            if known.sha256 != pack.sha256:
                raise SpecError(
                    f"two packs are called {pack.name}: {known.title} and {pack.title}, named in {named_in}",
                    hint="give one of them another name, or name the same one everywhere",
                )
            return
        self._open.append(pack.name)
        for below in pack.extends:
            _require_beside(below, Path(pack.path), is_published=is_published)
            self.add(below, Path(pack.path), Path(pack.path) / PACK_FILE, is_own=is_own and not source.is_remote)
        self._open.pop()
        self._read.add((str(source), folder))
        self.found[pack.name] = pack

    def _read_remote(self, source: PackSource, is_own: bool) -> Pack:
        content = self.fetch(source, is_own)
        pack = parse_pack(content.files, str(source), str(content.path))
        if source.repository and (pack.name, pack.version) != (source.name, source.version):
            raise SpecError(f"{source} holds the pack {pack.title}", hint="publish it under its own name and version")
        return pack


def _read_local(source: PackSource, folder: Path, named_in: Path) -> Pack:
    path = name_from_here(Path(os.path.normpath(folder / source.path)))
    if not path.is_dir() and not (path.suffix == SUFFIX and path.is_file()):
        named = f"{named_in} names it as a pack; " if named_in != Path() else ""
        raise ToolError(f"{path} is not a folder or archive", hint=f"{named}check the spelling")
    return parse_pack(read_pack_files(path), str(path))


def _require_beside(source: PackSource, path: Path, *, is_published: bool) -> None:
    """Refuse a pack that is neither in nor beside the folder of the one that names it: a pack reads nothing else."""
    if source.is_remote:
        if source.is_on_this_machine and is_published:
            raise SpecError(
                f"a published pack builds on {source}, which is on the machine of its author",
                hint="publish that pack, too, and name the repository that users have",
            )
        return
    if path.suffix == SUFFIX:
        raise SpecError(
            f"{path} builds on the path {source.path}: an archive can build only on packs of repositories",
            hint="publish that pack, and name it by repository, name and version",
        )
    # As it is read: without going back through links.
    target = Path(os.path.realpath(os.path.normpath(path / source.path)))
    if not target.is_relative_to(os.path.realpath(path.parent)):
        raise ToolError(
            f"{path / PACK_FILE} builds on {source.path}, which is neither in nor beside {path}",
            hint="let the project file name that pack, or put it beside this one",
        )
