"""Finds the name that a copy or backup of a file was made from: `.netrc~` and `kaggle (1).json`. Pure.

Editors, file managers, browsers and package managers each mark copies in their own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LONGEST_NAME = 255
_LONGEST_PATH = 4096
"""What Linux takes; longer ones are not searched."""
_ROUNDS = 4
"""Marks of one name that are taken off, as of `.env.bak.1~`."""
_BACKUP = "bak|bck|bk|bkp|back|backup|old|orig|original|save|saved|sav|copy|prev|previous"
_NUMBERED = r" \(\d{1,3}\)| ?\(copy(?: \d{1,3})?\)| copy(?: \d{1,3})?| - copy(?: \(\d{1,3}\))?"
_END = re.compile(
    rf"(?:~|#|\.~\d{{1,3}}~|{_NUMBERED}|[.\-_](?:{_BACKUP})\d{{0,3}}|\.\d{{1,3}}|[.\-_]\d{{4}}-?\d\d-?\d\d"
    r"|\.(?:tmp|temp|disabled|rpmsave|rpmnew|rpmorig|dpkg-old|dpkg-new|dpkg-dist|gz|bz2|xz|zst|zip|7z|tar|tgz))\Z"
)
_MIDDLE = re.compile(rf"(?:{_NUMBERED}|[.\-_](?:{_BACKUP})\d{{0,3}})(?=\.[^.]*\Z)")
_START = re.compile(r"(?:copy(?: \(\d{1,3}\))? of |~\$|\.~lock\.|\.?#)")
_ARCHIVE = re.compile(r"\.(?:zip|7z|tar|tgz|tar\.[a-z0-9]{2,3})\Z")
_SWAP = re.compile(r"\.sw[a-p]\Z")
"""What Vim keeps while a file is edited, and after a crash; a dot comes before the name unless it has one."""

ANY_COPY = (
    *("*~", "*.bak", "*.bak.*", "*.backup", "*.old", "*.orig", "*.save", "*.rpmsave", "*.disabled", "*.sw?"),
    *("#*#", ".~lock.*", "~$*", "copy of *"),
)
"""Patterns of .dockerignore for copies of any file, which an image needs for nothing."""


def find_originals(path: str) -> tuple[str, ...]:
    """Return what `path`, in lower case, may be a copy of; empty where no mark says so.

    An archive may be one of a folder, whose name ends with a slash then.
    """
    names = path.split("/")
    if len(path) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in names):
        return ()
    *folders, name = names
    place = [_take_off(folder, _END) for folder in folders]
    found = ("/".join((*place, original)) for original in _find_names(name))
    originals = tuple(original for original in found if original != path)
    return (*originals, *(f"{original}/" for original in originals if _ARCHIVE.search(name)))


def list_copy_patterns(name: str) -> Iterator[str]:
    """Yield patterns of .dockerignore for copies of what a pattern of secret_names.py names, besides ANY_COPY."""
    yield f"{name} *"
    stem, dot, ending = name.rpartition(".")
    if stem.strip("*"):
        yield from (f"{stem} *{dot}{ending}", f"{name}.*")
    if name.startswith("."):
        yield from (f"{name}{mark}*" for mark in (*(() if stem else (".",)), "-", "_"))


def _find_names(name: str) -> Iterator[str]:
    if swapped := _SWAP.search(name):
        whole = name[: swapped.start()]
        yield from (whole, whole.removeprefix("."))
    yield _take_off(name, _START, _END, _MIDDLE)


def _take_off(name: str, *marks: re.Pattern[str]) -> str:
    """Return a name without its marks; what would leave nothing stays."""
    for _ in range(_ROUNDS):
        for mark in marks:
            found = mark.match(name) if mark is _START else mark.search(name)
            rest = name[: found.start()] + name[found.end() :] if found else name
            name = rest if rest.strip(".") else name
    return name
