"""Finds what was edited or added by hand in the folder of a generated chart, and says where the same change belongs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trainchart.actions.support.models import LocatedModel
from trainchart.actions.support.project import name_from_here
from trainchart.archive.lock import LOCK_FILE, WAIVER_FILE, DriftKind, find_drift, parse_lock
from trainchart.compare.edits import ChartSource, Edit, describe_diff, suggest_place
from trainchart.errors import Problem, ToolError
from trainchart.host.files import read_tree
from trainchart.host.git import find_committed
from trainchart.render.chart import FAMILY
from trainchart.resources import read_family

if TYPE_CHECKING:
    from trainchart.actions.support.specs import LocatedSpec

_EDITS = {DriftKind.changed: "was changed by hand since it was generated", DriftKind.added: "was added by hand"}


def list_differing_files(folder: Path, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the paths whose content on disk is not as in `files`."""
    return list_differences(read_tree(folder), files) if folder.is_dir() else tuple(files)


def list_differences(present: Mapping[str, bytes], files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the paths whose content in `present` is not as in `files`."""
    every = {*present, *files} - {WAIVER_FILE}
    return tuple(sorted(path for path in every if present.get(path) != files.get(path)))


def find_edits(folder: Path, files: Mapping[str, bytes], located: LocatedSpec) -> list[Problem]:
    """Return what writing `files`, the chart of a spec, would discard of a generated chart.

    A file that is gone is written again, and one that is edited to what is generated now loses nothing.
    """
    return find_edits_in(folder, read_tree(folder), files, located) if is_generated(folder) else []


def find_edits_in(
    folder: Path, present: Mapping[str, bytes], files: Mapping[str, bytes], located: LocatedSpec
) -> list[Problem]:
    """Return what `find_edits` does, of a generated chart that was read from `folder`."""
    discarded = {path for path in list_differences(present, files) if path in present}
    try:
        lock = parse_lock(present[LOCK_FILE].decode(errors="replace"))
    except ToolError as error:
        # What the files were is not known, so each that would change may hold a user's work.
        unknown = sorted(discarded - {LOCK_FILE})
        suspected = (Problem("may have been changed by hand", str(folder / path)) for path in unknown)
        return [Problem(error.message, str(folder / LOCK_FILE)), *suspected]
    drift = [found for found in find_drift(lock, present) if found.path in discarded]
    wanted = {found.path: lock.files[found.path] for found in drift if found.path in lock.files}
    bases = find_committed(folder, wanted) if wanted else {}
    problems = []
    for found in drift:
        base, made = (each.get(found.path) for each in (bases, files))
        if found.kind is DriftKind.added:
            base = made = None
        edit = Edit(found.path, _as_text(present[found.path]) or "", _as_text(base), _as_text(made))
        hint = suggest_place(edit, _describe_source(located))
        problems.append(Problem(f"{_EDITS[found.kind]}{describe_diff(edit)}", str(folder / found.path), hint))
    return problems


def _describe_source(located: LocatedSpec) -> ChartSource:
    spec = str(name_from_here(located.spec.absolute()))
    if isinstance(located, LocatedModel):
        return ChartSource(spec, templates=read_family(FAMILY))
    return ChartSource(spec, located.family.title)


def _as_text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def is_generated(folder: Path) -> bool:
    return (folder / LOCK_FILE).is_file()
