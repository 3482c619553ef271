"""What a program wrote in a local run and could not have written in a pod, whose own file system is read-only.

Two witnesses: write_watch/ notes what Python and TensorFlow write, wherever it is, and a comparison of the code folder
before and after finds what shells and other native code wrote there.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from trainchart.host.trees import list_parents, walk
from trainchart.local.io.release_folder import read_told
from trainchart.local.plan import WRITES_FILE, LocalPlan

WATCH_FOLDER = str(Path(__file__).with_name("write_watch"))
"""Comes first on the PYTHONPATH of watched programs."""
_SKIPPED = ("__pycache__", "node_modules", "venv")
_EDITED = (".py", ".ipynb", ".md", ".sh", ".toml", ".yaml", ".yml")
"""Files that people change in an editor while a run goes on."""
_FILES_LIMIT = 50_000
_NAMED = 20


def read_code_times(plan: LocalPlan) -> Mapping[str, int]:
    """Return when each file of the code folders was written last, in nanoseconds.

    Hidden files, files that people edit, the runs and the volumes are left out.
    """
    folders = {pod.working_directory for pod in plan.pods if WRITES_FILE in pod.environment}
    left_out = {str(PurePosixPath(plan.release_folder).parent), *plan.outputs}
    return {path: time for folder in sorted(folders) for path, time in _walk(folder, left_out)}


def describe_writes(plan: LocalPlan, before: Mapping[str, int]) -> tuple[str, ...]:
    """Return a warning with the paths that a pod may not write; `before` is read_code_times before the run."""
    noted = {path for pod in plan.pods for path in _read_notes(pod.environment.get(WRITES_FILE))}
    changed = {_spell_out(path) for path, time in read_code_times(plan).items() if before.get(path) != time}
    # A folder stands for what is in it.
    every = noted | changed
    paths = sorted(path for path in every if every.isdisjoint(list_parents(path)))
    if not paths:
        return ()
    named = paths if len(paths) <= _NAMED else _group_by_folder(paths)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"the program wrote {', '.join(named[:_NAMED])}{more}: in a pod only volumes and /tmp are writable, and only "
        "volumes outlive it. Write below $TRAINCHART_CHECKPOINTS_DIR or another volume of the spec.",
    )


def _group_by_folder(paths: Sequence[str]) -> list[str]:
    """Return the paths with one entry for all that are in the same folder."""
    folders = Counter(str(PurePosixPath(path).parent) for path in paths)
    alone = [path for path in paths if folders[str(PurePosixPath(path).parent)] == 1]
    return sorted([*alone, *(f"{folder}/ ({count} files)" for folder, count in folders.items() if count > 1)])


def _walk(folder: str, left_out: Collection[str]) -> Iterator[tuple[str, int]]:
    if any(str(path) in left_out for path in (PurePosixPath(folder), *PurePosixPath(folder).parents)):
        return
    count = 0
    for parent, folders, files in walk(folder):
        folders[:] = [name for name in folders if _is_of_program(name) and f"{parent}/{name}" not in left_out]
        for name in filter(_is_of_program, files):
            count += 1
            if count > _FILES_LIMIT:
                return
            path = Path(parent, name)
            with contextlib.suppress(OSError):
                yield str(path), path.lstat().st_mtime_ns


def _is_of_program(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED and not name.endswith(_EDITED)


def _spell_out(path: str) -> str:
    """Return a path as the notes have it, so that one path is named once."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)


def _read_notes(path: str | None) -> list[str]:
    return read_told(Path(path)).splitlines() if path else []
