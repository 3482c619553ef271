"""Finds named pipes and devices where git expects files: git waits for them, and has no limit of its own.

A folder may come from anyone, with a repository in it. Only what git reads for us is searched, and each part of it up
to a limit; past that, the time limit of git.py ends the wait.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.files import TREE_LIMIT, read_bytes
from trainchart.host.trees import walk

_SMALL = 2**16
"""Bytes of a file that holds a path or the name of a branch."""
_ALTERNATES = 100
"""Other folders of objects that are searched."""
_PARTS = ("info", "refs", "reftable", "objects/info", "objects/pack", "objects")
"""Folders of a git directory that are read with all below them, large ones last."""
_NAMES = (".gitignore", ".gitattributes", ".gitmodules")
"""What git reads from the folders of a work tree."""


def find_git_directory(work_tree: Path) -> tuple[Path, Path]:
    """Return the git directory of a work tree, and the one that it shares with other work trees, often the same.

    Raises ToolError for a pipe or a device in the place of a file that says where they are.
    """
    own = work_tree / ".git"
    _refuse_special(str(own))
    if pointer := _read_path(own):
        own = work_tree / pointer.removeprefix("gitdir:").strip()
    _refuse_special(str(own / "commondir"))
    return own, own / _read_path(own / "commondir")


def refuse_git_pipes(work_tree: Path, folder: Path, *directories: Path) -> None:
    """Raise ToolError for a pipe or a device that git would read to tell what has changed in `folder`."""
    for place in dict.fromkeys(directories):
        _refuse_below(place, deep=False)
        for part in _PARTS:
            _refuse_below(place / part, deep=True)
    for path in _list_settings(work_tree, folder):
        _refuse_special(path)
    _refuse_in_alternates(directories[-1] / "objects")


def read_small_file(path: Path) -> bytes:
    """Return what a file holds; nothing where it cannot be read or is not small."""
    with suppress(ToolError):
        return read_bytes(path, limit=_SMALL)
    return b""


def _read_path(path: Path) -> str:
    """Return the path that a file holds; empty where git finds none in it either."""
    pointer = os.fsdecode(read_small_file(path)).strip()
    return "" if "\0" in pointer else pointer


def _refuse_in_alternates(objects: Path) -> None:
    """Raise ToolError for a pipe in the folders that `objects` borrows from, and in those that they borrow from."""
    found = [objects]
    for place in found:
        if place != objects:
            _refuse_below(place, deep=True)
        lines = read_small_file(place / "info" / "alternates").splitlines()
        for line in lines[: _ALTERNATES - len(found)]:
            if line.startswith(b'"'):  # quoted as in C
                with suppress(UnicodeError):
                    line = line.strip(b'"').decode("unicode_escape").encode("latin-1")
            borrowed = Path(os.path.normpath(place.resolve() / os.fsdecode(line)))
            if not line.startswith(b"#") and borrowed not in found and b"\0" not in line:
                found.append(borrowed)


def _refuse_below(folder: Path, *, deep: bool) -> int:
    waiting = [os.fspath(folder)]
    seen = 0
    while waiting and seen < TREE_LIMIT:
        try:
            entries = os.scandir(waiting.pop())
        except (OSError, ValueError):  # a path with a NUL byte
            continue
        with entries:
            for entry in entries:
                seen += 1
                # The kind of most entries is known without another call.
                if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                    _refuse_special(entry.path)
                with suppress(OSError):
                    waiting += [entry.path] if deep and entry.is_dir() else []
    return seen


def _list_settings(work_tree: Path, folder: Path) -> Iterator[str]:
    """Yield the paths of what git may read beside the files of `folder`, in the folders above and below it.

    Raises ToolError for a pipe or a device in the git directory of a repository within the work tree.
    """
    for above in (folder, *folder.parents):
        if above.is_relative_to(work_tree):
            yield from (str(above / name) for name in _NAMES)
    seen = 0
    for parent, folders, names in walk(folder):
        if ".git" in folders or ".git" in names:
            if parent != str(work_tree):
                seen += sum(_refuse_below(place, deep=True) for place in find_git_directory(Path(parent)))
            folders[:] = [name for name in folders if name != ".git"]
        seen += len(folders) + len(names)
        yield from (f"{parent}/{name}" for name in _NAMES if name in names)
        if seen > TREE_LIMIT:
            return


def _refuse_special(path: str) -> None:
    """Raise ToolError for what is neither a file nor a folder; nothing waits for a socket, which git itself makes."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # of names of any kind
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISSOCK(mode)):
        raise ToolError(f"{path} is neither a file nor a folder", hint="remove it: git would wait for it")
