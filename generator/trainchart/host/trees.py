"""Folders that programs may have made, walked and removed without recursion: they may be deeper than Python's stack."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from trainchart_runtime.io.files import A_LINK, open_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WAY = _FOLDER | getattr(os, "O_PATH", 0)
"""Passes through folders that may not be listed, as /home often is, where the system can."""


def walk(
    folder: Path | str, *, on_error: Callable[[OSError], None] | None = None, follow_links: bool = False
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what os.walk yields from the top, of any depth; before Python 3.12, os.walk is recursive."""
    waiting = [os.fspath(folder)]
    while waiting:
        parent = waiting.pop()
        try:
            folders, names = _list(parent)
        except OSError as error:
            if on_error is not None:
                on_error(error)
            continue
        yield parent, folders, names
        paths = [f"{parent.rstrip('/')}/{name}" for name in reversed(folders)]
        waiting += [path for path in paths if follow_links or not os.path.islink(path)]  # noqa: PTH114  # takes any name


def open_inside(folder: Path, path: Path) -> int:
    """Open the regular file `path` below `folder`; both paths must be absolute and free of links.

    Raises OSError: ESTALE if a folder on the way, or above `folder`, is now a link, and SpecialFileError for what is
    not a regular file.
    """
    *parents, name = path.relative_to(folder).parts
    place = os.open(folder.anchor, _WAY)
    try:
        for parent, flags in (*((each, _WAY) for each in folder.parts[1:]), *((each, _FOLDER) for each in parents)):
            above, place = place, os.open(parent, flags, dir_fd=place)
            os.close(above)
        return open_regular(name, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) or error.strerror == A_LINK:
            raise OSError(errno.ESTALE, "part of the path changed while it was read", str(path)) from error
        raise
    finally:
        os.close(place)


def list_parents(path: str) -> Iterator[str]:
    """Yield the folders above an absolute path, from the nearest one; for deep paths faster than Path.parents."""
    while (parent := path.rpartition("/")[0]) != "":
        yield parent
        path = parent


def _list(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of folders, links to folders included, and all other names."""
    folders: list[str] = []
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False
            (folders if is_folder else names).append(entry.name)
    return folders, names


def remove_tree(path: Path) -> None:
    """Remove what is at `path`, if anything is, with all below it, of any depth; links are not followed."""
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_folder:
        path.unlink(missing_ok=True)
        return
    top = os.open(path, _FOLDER)
    try:
        waiting = _remove_files(top)
        while waiting:
            waiting += _remove_folder(waiting.pop(), top)
    finally:
        os.close(top)
    path.rmdir()


def _remove_folder(name: str, top: int) -> list[str]:
    """Remove a folder of `top`; the folders in it are moved up to `top`, and their new names returned."""
    moved = []
    folder = os.open(name, _FOLDER, dir_fd=top)
    try:
        for below in _remove_files(folder):
            moved.append(os.urandom(16).hex())
            os.rename(below, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)
    return moved


def _remove_files(folder: int) -> list[str]:
    """Remove all of an open folder but the folders in it, whose names are returned; an empty one is removed, too."""
    with os.scandir(folder) as entries:
        found = list(entries)
    folders = []
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=folder)
            continue
        try:
            os.rmdir(entry.name, dir_fd=folder)
        except OSError:
            folders.append(entry.name)
    return folders
