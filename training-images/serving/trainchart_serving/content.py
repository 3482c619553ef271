"""The content of a model version: its files by SHA-256, as `sha256sum` writes them, and one hash over that list.

A version may carry the list as SHA256SUMS; then its files must be those of the list, and no others.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from trainchart_serving.failures import Code, ServingError

SUMS_FILE = "SHA256SUMS"
"""As the training library writes it into its exports; `sha256sum -c` checks it."""
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_PREFIX = "sha256:"
_MOST_FILES = 100_000

Stamp = tuple[tuple[str, int, int], ...]
"""Path, size and time of every file: what tells at little cost whether a version has changed."""


def read_stamp(folder: Path) -> Stamp:
    """Return the files of a version with size and time of change."""
    return tuple((name, *_read_size_and_time(folder / name)) for name in list_files(folder))


def read_sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a version but its list, by path."""
    return {name: _hash_file(folder / name) for name in list_files(folder) if name != SUMS_FILE}


def dump_sums(sums: Mapping[str, str]) -> str:
    """Return the list as `sha256sum` writes it, in the order of the paths' bytes."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums, key=os.fsencode))


def hash_content(sums: Mapping[str, str]) -> str:
    """Return the content hash of a version, which is that of its list: `sha256sum SHA256SUMS`."""
    return _PREFIX + hashlib.sha256(dump_sums(sums).encode("utf-8", "surrogateescape")).hexdigest()


def check_content(folder: Path, expected: str | None) -> str:
    """Return the content hash of a version whose files are those of its list and of the `expected` hash.

    Raises:
        ServingError: DATA_LOSS, with the files that differ.
    """
    sums = read_sums(folder)
    if (folder / SUMS_FILE).exists():
        _compare(sums, parse_sums((folder / SUMS_FILE).read_text("utf-8", "surrogateescape")))
    return check_sums(sums, expected)


def check_sums(sums: Mapping[str, str], expected: str | None) -> str:
    """Return the content hash of a list, which is the `expected` one. Raises ServingError."""
    found = hash_content(sums)
    if expected is not None and found.removeprefix(_PREFIX) != expected.removeprefix(_PREFIX):
        raise _lost(f"the content hash is {found}, but {expected} is pinned")
    return found


def _compare(sums: Mapping[str, str], listed: Mapping[str, str]) -> None:
    missing, added = sorted(listed.keys() - sums.keys()), sorted(sums.keys() - listed.keys())
    changed = sorted(name for name in sums.keys() & listed.keys() if sums[name] != listed[name])
    parts = [
        f"{word}: {', '.join(names)}"
        for word, names in (("changed", changed), ("missing", missing), ("not in the list", added))
        if names
    ]
    if parts:
        raise _lost(f"the files differ from {SUMS_FILE}: {'; '.join(parts)}")


def parse_sums(text: str) -> dict[str, str]:
    """Return the SHA-256 of every file of a list. Raises ServingError."""
    listed = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise _lost(f"{SUMS_FILE}:{number} is not a line of sha256sum: {line[:80]!r}")
        listed[match[2].removeprefix("./")] = match[1]
    return listed


def _lost(message: str) -> ServingError:
    return ServingError(Code.DATA_LOSS, message)


def list_files(folder: Path) -> list[str]:
    """Return the paths of a version's files.

    Raises:
        ServingError: there are very many; links may repeat folders without end.
    """
    found: list[str] = []
    # What a link leads to counts as the file: a claim's and a ConfigMap's files are often links.
    for seen, (root, _, names) in enumerate(os.walk(folder, followlinks=True)):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in names]  # noqa: PTH118
        if max(seen, len(found)) > _MOST_FILES:
            raise _lost(f"the version has more than {_MOST_FILES} files and folders, or links that repeat them")
    return sorted(found, key=os.fsencode)


def _read_size_and_time(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
