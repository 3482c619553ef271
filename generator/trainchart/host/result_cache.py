"""Results of earlier commands, kept for this user by the content of all that they depend on.

A result lies in one file per subject, such as a spec and the folder of its chart, together with the hash of its inputs:
another hash, a damaged file or none mean that the work is done again. Nothing breaks when the folder is deleted.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import pydantic

from trainchart.errors import ToolError
from trainchart.host.files import read_bytes, write_file
from trainchart.host.user_folders import find_user_folder
from trainchart.resources import list_code_folders

_SIZE_LIMIT = 4 * 1024 * 1024
_KEPT = 500
"""Results of a kind; the older half goes when there are more."""
_ENTRY_LIMIT = 5000
"""Files and folders; to list more takes longer than most commands."""

Result = TypeVar("Result")


class ResultCache(Generic[Result]):
    """Keeps results of one `kind`, dataclasses of type `of`, in the cache folder of the user (XDG base directories)."""

    def __init__(self, kind: str, of: type[Result], environment: Mapping[str, str] = os.environ) -> None:
        self._folder = find_user_folder("XDG_CACHE_HOME", ".cache", environment) / "results" / kind
        self._adapter = pydantic.TypeAdapter(_Entry[of])  # type: ignore[valid-type]

    def recall(self, subject: str) -> tuple[str, Result] | None:
        """Return the hash of the inputs, and the result, that were remembered last for `subject`."""
        path = self._path(subject)
        try:
            if not (_is_own(self._folder) and _is_own(path)):
                return None
            entry = self._adapter.validate_json(read_bytes(path, limit=_SIZE_LIMIT))
        except (ToolError, OSError, ValueError):
            return None
        return entry.inputs, entry.result

    def remember(self, subject: str, inputs: str, result: Result) -> None:
        """Keep `result`, which follows from inputs of that hash. Failing to write is not an error."""
        with suppress(ToolError, OSError, ValueError):  # a name that is not Unicode is a ValueError
            entry = self._adapter.dump_json(_Entry(inputs=inputs, result=result))
            if len(entry) > _SIZE_LIMIT:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._path(subject)
            write_file(path, entry)
            path.chmod(0o600)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        kept = list(self._folder.glob("*.json"))
        if len(kept) > _KEPT:
            kept.sort(key=lambda path: path.stat().st_mtime)
            for path in kept[: len(kept) // 2]:
                path.unlink(missing_ok=True)

    def _path(self, subject: str) -> Path:
        return self._folder / f"{hashlib.sha256(subject.encode(errors='surrogateescape')).hexdigest()}.json"


def _is_own(path: Path) -> bool:
    """Whether no other user can have written what is at `path`. Raises OSError."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class _Entry(pydantic.BaseModel, Generic[Result]):
    inputs: str
    result: Result


def hash_inputs(*parts: str | bytes) -> str:
    """Return one sha256 of `parts`, in their order, and of the program itself; empty where that is unknown."""
    program = _hash_program()
    return _hash([program, *parts]) if program else ""


def hash_listing(folder: Path) -> str:
    """Return one sha256 of the files below `folder` by name, size and times of change, without Python's bytecode.

    It is empty, which stands for unknown, where the folder cannot be listed, holds links, or very much.
    """
    lines: list[str] = []
    waiting = [str(folder)]
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                    elif not stat.S_ISREG(found.st_mode):
                        return ""
                    elif not entry.name.endswith(".pyc"):
                        # A date can be set, but for the one of the last change of the entry itself.
                        times = f"{found.st_mtime_ns}\0{found.st_ctime_ns}"
                        lines.append(f"{entry.path}\0{found.st_size}\0{times}\0{found.st_ino}")
            if len(lines) > _ENTRY_LIMIT:
                return ""
    except OSError:
        return ""
    return _hash(sorted(lines))


@functools.cache
def _hash_program() -> str:
    """Return one sha256 of Python, of trainchart's own files, and of the folders that libraries are installed in.

    It is empty, which stands for unknown, where trainchart's files cannot be listed.
    """
    own = [hash_listing(folder) for folder in list_code_folders()]
    # Not all of sys.path: it also holds the folder of the script that was started.
    libraries = sorted({path for path in sys.path if path.endswith("-packages") and Path(path).is_dir()})
    installed = [f"{path}\0{Path(path).stat().st_mtime_ns}" for path in libraries]
    return _hash([sys.version, *own, *installed]) if all(own) else ""


def _hash(parts: Iterable[str | bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        total.update(b"%d:" % len(content))
        total.update(content)
    return total.hexdigest()
