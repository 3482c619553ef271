"""Reading and writing files and folders: all or nothing, with errors that say what to do.

A tree is replaced by renames of sibling folders, so that every reader sees the old tree or the new one,
and a full disk, a read-only folder or Ctrl-C leaves the old one as it was.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from trainchart.errors import ToolError
from trainchart.host.trees import open_inside, remove_tree, walk
from trainchart_runtime.io.files import SpecialFileError, open_regular

READ_LIMIT = 64 * 1024 * 1024
"""Bytes; nothing that trainchart reads is larger on purpose."""
TREE_LIMIT = 50_000
"""Files and folders below a folder that is read whole; links can make many of few."""
LOCK_SECONDS = 30.0
"""How long a writer waits for another one, which needs a few seconds."""
_LOCK_PAUSE_SECONDS = 0.1
_OPEN_FILES = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
_TEMPORARY = ".tmp"
_STAGED = ".trainchart-new"
_RETIRED = ".trainchart-old"
_REMOVED = ".trainchart-gone"

_HINTS = {
    errno.ENOSPC: "free some space on that disk; nothing was changed",
    errno.EDQUOT: "the disk quota is used up; nothing was changed",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.EACCES: "check the permissions of the file and of the folders above it",
    errno.EPERM: "check the permissions of the file and of the folders above it",
    errno.ENOENT: "check the spelling; relative paths start at the current folder",
    errno.EEXIST: "a file is in the way of that folder; move it or choose another name",
    errno.ENOTDIR: "a part of that path is a file, not a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "the path is a loop of symbolic links",
    errno.ESTALE: "another process is changing that folder; try again",
}


def refuse_pipe(path: Path) -> None:
    """Raise ToolError for a named pipe, a socket or a device: to read it may never end. Pipes of the shell are fine."""
    if is_given_open(path):
        return
    if path.is_fifo() or path.is_socket() or path.is_char_device() or path.is_block_device():
        raise _special_error(path, SpecialFileError(path))


def is_given_open(path: Path) -> bool:
    """Say whether the shell has opened what is at `path`, or nothing can be there."""
    return str(path.absolute()).startswith(_OPEN_FILES) or str(path) == os.devnull


def _special_error(path: Path, error: SpecialFileError) -> ToolError:
    return ToolError(f"{path} is {error.strerror}", hint="to read from a pipe, give - or <(command)")


def read_bytes(path: Path, *, limit: int = READ_LIMIT, follow_links: bool = True) -> bytes:
    """Return the content of the file at `path`; ToolError where there is none, or more than `limit` bytes."""
    return _read(path, partial(_open, path, follow_links=follow_links), limit)


def _read(path: Path, open_file: Callable[[], BinaryIO], limit: int) -> bytes:
    try:
        with open_file() as stream:
            content = stream.read(limit + 1)
    except SpecialFileError as error:
        raise _special_error(path, error) from error
    except IsADirectoryError as error:
        raise ToolError(f"{path} is a folder, expected a file") from error
    except OSError as error:
        raise _tool_error("cannot read", path, error) from error
    except ValueError as error:
        raise ToolError(f"cannot read {str(path)!r}: {error}") from error
    if len(content) > limit:
        raise ToolError(f"{path} is larger than {limit} bytes", hint="is this the file you mean?")
    return content


def _open(path: Path, *, follow_links: bool) -> BinaryIO:
    if follow_links and is_given_open(path):
        return path.open("rb")
    if follow_links:
        refuse_pipe(path)  # to open a device may already change something
    return os.fdopen(open_regular(path, follow_links=follow_links), "rb")


def _open_inside(folder: Path, path: Path) -> BinaryIO:
    return os.fdopen(open_inside(folder, path), "rb")


def read_text(path: Path, *, limit: int = READ_LIMIT, follow_links: bool = True) -> str:
    """Return the content of the UTF-8 file at `path`, as read_bytes does."""
    content = read_bytes(path, limit=limit, follow_links=follow_links)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ToolError(f"{path}:{line}: not UTF-8 text", hint="save the file as UTF-8") from error


def read_tree(folder: Path, *, limit: int = READ_LIMIT) -> dict[str, bytes]:
    """Return every file below `folder` by its relative POSIX path, sorted; links to files and folders are followed.

    Raises ToolError for links that lead out of `folder`, or into a folder that they are in, for what is neither file
    nor folder, for more than `limit` bytes, and for more than TREE_LIMIT files and folders.
    """
    if not folder.is_dir():
        raise ToolError(f"{folder} is not a folder", hint=_HINTS[errno.ENOENT])
    files: dict[str, bytes] = {}
    root, remaining, entries = folder.resolve(), limit, 0
    for parent, folders, names in walk(folder, on_error=_raise_walk_error, follow_links=True):
        folders.sort()
        for path in (Path(parent, name) for name in (*folders, *names)):
            if path.is_symlink():
                _require_link_inside(path, folder)
        entries += len(folders) + len(names)
        if entries > TREE_LIMIT:
            raise ToolError(f"{folder} holds more than {TREE_LIMIT} files", hint="is this the folder you mean?")
        here = Path(parent).resolve()
        for name in sorted(names):
            path = Path(parent, name)
            if not path.is_file():
                raise ToolError(f"{path} is neither a file nor a folder", hint="remove it")
            # What has become a link since it was looked at is not followed, nor is a folder on the way.
            target = path.resolve() if path.is_symlink() else here / name
            if not target.is_relative_to(root):
                raise ToolError(f"{path} is now a link to a place outside {folder}", hint="try again")
            content = _read(path, partial(_open_inside, root, target), remaining)
            remaining -= len(content)
            files[path.relative_to(folder).as_posix()] = content
    return dict(sorted(files.items()))


def read_inside(path: Path, folder: Path, *, limit: int = READ_LIMIT) -> bytes:
    """Return the content of a file of `folder`, as read_bytes does. Raises ToolError, also for a link out of it."""
    try:
        path.stat()
    except OSError as error:
        raise _tool_error("cannot read", path, error) from error
    root, target = (Path(os.path.realpath(each)) for each in (folder, path))
    if not target.is_relative_to(root):
        raise ToolError(
            f"{path} is a link to {find_target(path)}, outside {folder}", hint="copy what it leads to in its place"
        )
    if not target.is_file() and not target.is_dir():
        raise ToolError(f"{path} is neither a file nor a folder", hint="replace it with a file")
    return _read(path, partial(_open_inside, root, target), limit)


def _require_link_inside(link: Path, folder: Path) -> None:
    """Raise ToolError where a link leads out of `folder`, or into a folder that it is in."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ToolError(f"{link} is a link to {find_target(link)}, which cannot be read", hint="remove it") from error
    if not target.is_relative_to(folder.resolve()):
        raise ToolError(
            f"{link} is a link to {find_target(link)}, outside {folder}", hint="copy what it leads to in its place"
        )
    # By the path that led here: two links may lead into each other's folders.
    if target in {parent.resolve() for parent in link.parents if parent.is_relative_to(folder)}:
        raise ToolError(f"{link} is a link to {find_target(link)}, a folder that contains it", hint="remove it")


def find_target(link: Path) -> str:
    """Return what a link says for people; it may be gone by now."""
    try:
        return str(link.readlink())
    except OSError:
        return "another place"


def write_file(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step: readers see the old content or the new, never a part."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{path.name[:100]}."
        drop_leftovers(path.parent, prefix)
        handle, temporary = make_temporary(path.parent, prefix)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            temporary.chmod(0o666 & ~read_umask())
            temporary.replace(path)
            temporary = None
    except IsADirectoryError as error:
        raise ToolError(f"cannot write {path}: it is a folder", hint="name a file") from error
    except OSError as error:
        raise _tool_error("cannot write", path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def make_temporary(folder: Path, prefix: str) -> tuple[int, Path]:
    """Return a new open file that is locked, which tells it from what a killed writer has left."""
    while True:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=_TEMPORARY, dir=folder)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # taken for a leftover before it was locked


def drop_leftovers(folder: Path, prefix: str) -> None:
    """Remove what writers of the same file have left that were killed: no process holds its lock."""
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208  # a folder may hold many files, and none of them matters
            if name.startswith(prefix) and name.endswith(_TEMPORARY):
                _drop_unlocked(folder / name)


def _drop_unlocked(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return
    finally:
        os.close(handle)


def write_tree(target: Path, files: Mapping[str, bytes], *, is_ours: Callable[[Path], bool]) -> None:
    """Replace the folder `target` by exactly `files` (relative POSIX path → content), all or nothing.

    An existing folder is replaced only if it is empty or `is_ours(target)` says so; anything else raises
    ToolError and is left alone. What an earlier, killed attempt left beside `target` is put right first.
    """
    for name in files:
        _require_inside(name)
    build_tree(target, lambda staged: _write_all(staged, files), is_ours=is_ours)


def build_tree(target: Path, fill: Callable[[Path], None], *, is_ours: Callable[[Path], bool]) -> None:
    """Replace the folder `target` by what `fill` writes into an empty one, as write_tree does; if it raises, not."""
    if target.is_symlink():
        # Renaming would replace the link, and deleting through it could hit a folder elsewhere.
        target = target.resolve()
    staged, retired, _ = _siblings(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.parent):
            _recover(target)
            _require_replaceable(target, is_ours)
            try:
                staged.mkdir()
                fill(staged)
                _swap(target, staged, retired)
            finally:
                with suppress(OSError):
                    remove_tree(staged)
            # The new tree is in place: a failure to clear the old one away is no failure of the write.
            with suppress(OSError):
                _recover(target)
    except OSError as error:
        raise _tool_error("cannot write", target, error) from error


def tidy_tree(target: Path) -> None:
    """Put right what a killed `write_tree` has left beside `target`, where it can be: nothing depends on it."""
    if any(map(os.path.lexists, _siblings(target))):
        with suppress(OSError, ToolError), locked(target.parent):
            _recover(target)


def _siblings(target: Path) -> tuple[Path, Path, Path]:
    """Return where the new tree is made, where the old one waits until the new one is in place, and is removed."""
    staged, retired, removed = (target.with_name(f".{target.name}{end}") for end in (_STAGED, _RETIRED, _REMOVED))
    return staged, retired, removed


def _write_all(staged: Path, files: Mapping[str, bytes]) -> None:
    for folder in sorted({(staged / name).parent for name in files}):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(files.items()):
        with (staged / name).open("xb") as stream:
            stream.write(content)


def _swap(target: Path, staged: Path, retired: Path) -> None:
    """Two renames; _recover undoes the first if the second never happens."""
    try:
        if target.exists():
            target.rename(retired)
        staged.rename(target)
    except BaseException:
        if retired.exists() and not target.exists():
            retired.rename(target)
        raise


def _recover(target: Path) -> None:
    """Leave nothing beside `target`: at any moment it or `retired` is the newest tree, and neither is a part of one."""
    staged, retired, removed = _siblings(target)
    remove_tree(removed)
    if retired.exists():
        if target.exists():
            # Under a name that is never taken back: a removal that is cut off leaves a part.
            retired.rename(removed)
            remove_tree(removed)
        else:
            retired.rename(target)
    remove_tree(staged)


def _require_replaceable(target: Path, is_ours: Callable[[Path], bool]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ToolError(f"{target} is a file, expected a folder", hint="choose another output folder")
    if any(target.iterdir()) and not is_ours(target):
        raise ToolError(
            f"{target} is not empty and was not written by trainchart",
            hint="choose another folder, or empty this one yourself",
        )


def _require_inside(name: str) -> None:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ToolError(f"{name!r} is not a relative path inside the folder")


@contextmanager
def locked(folder: Path, *, wait_seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Let one writer at a time work in `folder`; the lock is the folder itself, so no file stays behind.

    Raises ToolError where another program holds it for longer than `wait_seconds`.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + wait_seconds
        while not _try_lock(handle):
            if time.monotonic() > end:
                processes = ", ".join(map(str, sorted(find_lock_holders(handle))))
                holders = f" (process {processes})" if processes else ""
                raise ToolError(
                    f"another program has locked {folder}{holders} for more than {wait_seconds:.0f} seconds",
                    hint="wait until it ends, or stop it, then run this again",
                )
            time.sleep(_LOCK_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_lock_holders(handle: int) -> set[int]:
    """Return the ids of the processes that hold the lock of an open file, as Linux lists them; none where unknown."""
    inode = f":{os.fstat(handle).st_ino}"
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return set()
    return {int(words[4]) for words in lines if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode)}


def read_umask() -> int:
    """Return which rights new files of this process do not have."""
    current = os.umask(0o022)
    os.umask(current)
    return current


def _raise_walk_error(error: OSError) -> None:
    raise _tool_error("cannot read", Path(error.filename or "?"), error) from error


def _tool_error(action: str, path: Path, error: OSError) -> ToolError:
    hint = _HINTS.get(error.errno or 0, "")
    return ToolError(f"{action} {path}: {(error.strerror or str(error)).lower()}", hint=hint)
