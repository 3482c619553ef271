"""Writing files that must not be there yet: all of them or none, and never over what somebody has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trainchart.errors import Problem, ToolError


def write_new_files(files: Mapping[Path, bytes]) -> None:
    """Write all `files`, in their order, and the folders they need.

    Raises:
        ToolError: some exist (all of them are named), or cannot be written; nothing of this call is left then.
    """
    existing = [path for path in files if os.path.lexists(path)]
    if existing:
        raise ToolError(
            "files are there already, and are never overwritten",
            hint="choose another name, or move them away",
            problems=tuple(Problem("exists", str(path)) for path in existing),
        )
    written: list[Path] = []
    made: list[Path] = []
    try:
        for path, content in files.items():
            _make_folders(path.parent, made)
            # Exclusive, so that a file which appeared meanwhile is an error and not a loss.
            with path.open("xb") as stream:
                written.append(path)
                stream.write(content)
    except BaseException as error:
        _take_back(written, made)
        if isinstance(error, OSError):
            reason = (error.strerror or str(error)).lower()
            raise ToolError(f"cannot write {path}: {reason}", hint="nothing was changed") from error
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        made.append(parent)


def _take_back(written: list[Path], made: list[Path]) -> None:
    for path in written:
        path.unlink(missing_ok=True)
    for folder in reversed(made):
        try:
            folder.rmdir()
        except OSError:
            return  # somebody put something there meanwhile
