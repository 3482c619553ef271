"""Writing files that must not be there yet: all of them or none, and never over what users have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trainchart.errors import Problem, ToolError
from trainchart.host.files import drop_leftovers, make_temporary, read_bytes, read_umask


def write_new_files(files: Mapping[Path, bytes]) -> None:
    """Write all `files`, in their order, and the folders they need.

    The last one says that all are there. Before it is, files with the very content wanted are what a call has left that
    was killed, or as good as that.

    Raises:
        ToolError: some exist (all of them are named), or cannot be written; nothing of this call is left then.
    """
    for path in files:
        drop_leftovers(path.parent, _prefix(path))
    last = list(files)[-1]
    existing = [path for path in files if os.path.lexists(path)]
    if last not in existing:
        existing = [path for path in existing if not _holds(path, files[path])]
    if existing:
        raise ToolError(
            "files already exist, and are never overwritten",
            hint="choose another name, or move them away",
            problems=tuple(Problem("exists", str(path)) for path in existing),
        )
    written: list[Path] = []
    made: list[Path] = []
    try:
        for path, content in files.items():
            _make_folders(path.parent, made)
            if path is last or not _holds(path, content):
                _write_new(path, content)
                written.append(path)
    except BaseException as error:
        _take_back(written, made)
        if isinstance(error, OSError):
            reason = (error.strerror or str(error)).lower()
            raise ToolError(f"cannot write {path}: {reason}", hint="nothing was changed") from error
        raise


def _holds(path: Path, content: bytes) -> bool:
    """Tell whether a file is there that holds exactly `content`."""
    try:
        return read_bytes(path, limit=len(content), follow_links=False) == content
    except ToolError:
        return False


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def _write_new(path: Path, content: bytes) -> None:
    """Put a file there in one step; one that appeared meanwhile is an error and not a loss."""
    handle, temporary = make_temporary(path.parent, _prefix(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            temporary.chmod(0o666 & ~read_umask())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with path.open("xb") as plain:
                plain.write(content)
    finally:
        temporary.unlink(missing_ok=True)


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
            return  # something was put there meanwhile
