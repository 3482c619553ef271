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
        base = environment.get("XDG_CACHE_HOME", "")
        root = Path(base) if base.startswith("/") else Path.home() / ".cache"
        self._folder = root / "trainchart" / "results" / kind
        self._adapter = pydantic.TypeAdapter(_Entry[of])  # type: ignore[valid-type]

    def recall(self, subject: str) -> tuple[str, Result] | None:
        """Return the hash of the inputs, and the result, that were remembered last for `subject`."""
        try:
            entry = self._adapter.validate_json(read_bytes(self._path(subject), limit=_SIZE_LIMIT))
        except (ToolError, ValueError):
            return None
        return entry.inputs, entry.result

    def remember(self, subject: str, inputs: str, result: Result) -> None:
        """Keep `result`, which follows from inputs of that hash. Failing to write is not an error."""
        with suppress(ToolError, OSError, ValueError):  # a name that is not Unicode is a ValueError
            write_file(self._path(subject), self._adapter.dump_json(_Entry(inputs=inputs, result=result)))
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        kept = list(self._folder.glob("*.json"))
        if len(kept) > _KEPT:
            kept.sort(key=lambda path: path.stat().st_mtime)
            for path in kept[: len(kept) // 2]:
                path.unlink(missing_ok=True)

    def _path(self, subject: str) -> Path:
        return self._folder / f"{hashlib.sha256(subject.encode(errors='surrogateescape')).hexdigest()}.json"


class _Entry(pydantic.BaseModel, Generic[Result]):
    inputs: str
    result: Result


def hash_inputs(*parts: str | bytes) -> str:
    """Return one sha256 of `parts`, in their order, and of the program itself."""
    return _hash([_hash_program(), *parts])


def hash_listing(folder: Path) -> str:
    """Return one sha256 of the files below `folder` by name, size and time of change, without those that Python makes.

    It is empty, which stands for unknown, where the folder cannot be listed, holds links, or very much.
    """
    lines: list[str] = []
    waiting = [str(folder)]
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name == "__pycache__":
                        continue
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(entry.path)
                        lines.append(entry.path)
                    elif stat.S_ISREG(found.st_mode):
                        lines.append(f"{entry.path}\0{found.st_size}\0{found.st_mtime_ns}\0{found.st_ino}")
                    else:
                        return ""
            if len(lines) > _ENTRY_LIMIT:
                return ""
    except OSError:
        return ""
    return _hash(sorted(lines))


@functools.cache
def _hash_program() -> str:
    """Return one sha256 of Python, of trainchart's own files, and of the folders that libraries are installed in."""
    installed = [f"{path}\0{Path(path).stat().st_mtime_ns}" for path in sys.path if path and Path(path).is_dir()]
    return _hash([sys.version, *map(hash_listing, list_code_folders()), *installed])


def _hash(parts: Iterable[str | bytes]) -> str:
    total = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else part.encode(errors="surrogateescape")
        total.update(b"%d:" % len(content))
        total.update(content)
    return total.hexdigest()
