"""Reads a model's code as it goes into an image: without what .dockerignore names, and nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from trainchart.archive.lock import LOCK_FILE
from trainchart.errors import Problem, ToolError
from trainchart.images.ignore import IGNORE_FILE, IgnoreRules, parse_ignore_rules
from trainchart.images.inputs import ContextFile

LIMIT = 256 * 1024 * 1024
"""Bytes of code; more is data that was not meant to be in the image."""


def read_ignore_rules(folder: Path) -> IgnoreRules:
    """Return the rules of a folder's .dockerignore, or the built-in ones alone. Raises ToolError."""
    path = folder / IGNORE_FILE
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read {path}: {error}") from error
    return parse_ignore_rules(text)


def read_code(
    folder: Path, rules: IgnoreRules, *, without: frozenset[Path] = frozenset(), limit: int = LIMIT
) -> tuple[ContextFile, ...]:
    """Return the files of `folder` that `rules` let through, sorted by path; links inside the folder are followed.

    Left out is what follows from an image, and would make another one necessary each time: generated charts, and
    the files `without`, given by absolute path.

    Raises ToolError for links that lead out of it, what is neither file nor folder, and more than `limit` bytes.
    """
    root = folder.resolve()
    files: list[ContextFile] = []
    refused: list[Problem] = []
    size = 0
    for path, name in _walk(root, rules):
        if not path.resolve().is_relative_to(root):
            refused.append(Problem(f"leads to {path.readlink()}, outside the code folder", str(folder / name)))
            continue
        if path.resolve() in without:
            continue
        if path.is_dir():
            refused.append(Problem("leads into a folder that it is in", str(folder / name)))
            continue
        if not path.is_file():
            raise ToolError(f"{folder / name} is neither a file nor a folder", hint=f"name it in {IGNORE_FILE}")
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ToolError(
                f"cannot read {folder / name}: {error.strerror}", hint=f"or name it in {IGNORE_FILE}"
            ) from error
        size += len(content)
        if size > limit:
            raise ToolError(
                f"the code in {folder} is larger than {limit // 1024**2} MiB",
                hint=f"name data and environments in {folder / IGNORE_FILE}: data belongs into a volume",
            )
        files.append(ContextFile(name, content, os.access(path, os.X_OK)))
    if refused:
        hint = f"copy what they lead to into the folder, or name them in {IGNORE_FILE}"
        raise ToolError("the code has links that an image cannot hold", hint=hint, problems=tuple(refused))
    return tuple(files)


def _walk(root: Path, rules: IgnoreRules) -> Iterator[tuple[Path, str]]:
    """Yield what is no folder, and links to folders outside, with paths relative to `root`."""

    def refuse(error: OSError) -> None:
        raise ToolError(
            f"cannot read {error.filename}: {error.strerror}", hint=f"or name it in {IGNORE_FILE}"
        ) from error

    for parent, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        here = Path(parent)
        if LOCK_FILE in names:
            folders.clear()
            continue
        for folder in sorted(folders):
            path = here / folder
            name = path.relative_to(root).as_posix()
            if rules.prunes(name):
                folders.remove(folder)
            elif path.is_symlink() and not _can_be_followed(path, root):
                folders.remove(folder)
                if not rules.ignores(name):
                    yield path, name
        folders.sort()
        for file in sorted(names):
            name = (here / file).relative_to(root).as_posix()
            if not rules.ignores(name):
                yield here / file, name


def _can_be_followed(link: Path, root: Path) -> bool:
    """Tell whether a link leads to a folder inside `root` that is not on the way to the link itself."""
    target = link.resolve()
    way = {parent.resolve() for parent in link.parents if parent.is_relative_to(root)}
    return target.is_relative_to(root) and target not in way
