"""Reads a model's code as it goes into an image: without what .dockerignore names, and nothing from elsewhere."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.lock import LOCK_FILE
from trainchart.archive.read import parse_archive
from trainchart.errors import Problem, ToolError
from trainchart.host.files import TREE_LIMIT, find_target, read_inside
from trainchart.host.trees import open_inside, walk
from trainchart.images.ignore import IGNORE_FILE, IgnoreRules, parse_ignore_rules
from trainchart.images.inputs import ContextFile
from trainchart.images.requirements import REQUIREMENTS_FILE

LIMIT = 256 * 1024 * 1024
"""Bytes of code; more is data that was not meant to be in the image."""
_LINK_WEIGHT = 50
"""Entries that a link to a folder counts for."""
_RULES_LIMIT = 256 * 1024
"""Bytes of patterns: each is tried for each file."""


def read_ignore_rules(folder: Path) -> IgnoreRules:
    """Return the rules of a folder's .dockerignore, or the built-in ones alone. Raises ToolError."""
    path = folder / IGNORE_FILE
    if not os.path.lexists(path):
        return parse_ignore_rules("")
    content = read_inside(path, folder, limit=_RULES_LIMIT)
    try:
        return parse_ignore_rules(content.decode())
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error


def read_code(
    folder: Path, rules: IgnoreRules, *, without: frozenset[Path] = frozenset(), limit: int = LIMIT
) -> tuple[ContextFile, ...]:
    """Return the files of `folder` that `rules` let through, sorted by path; links inside the folder are followed.

    The path of `folder` must be free of links: one in it has come since, and may lead anywhere.

    Left out is what follows from an image, and would make another one necessary each time: generated charts, packed
    or not, and the files `without`, given by absolute path.

    Raises ToolError for links that lead out of it or to what stays out, what is neither file nor folder, a list of
    packages that would not be in the image, more than `limit` bytes, and more than TREE_LIMIT files and folders.
    """
    root = folder
    _require_below(root, root)
    files: list[ContextFile] = []
    refused: list[Problem] = []
    size = 0
    for path, name in _walk(root, rules):
        if fault := _find_fault(path, root, rules):
            refused.append(Problem(fault, str(folder / name)))
            continue
        if path.resolve() in without:
            continue
        # What os.fsdecode makes of bytes that are no text.
        if any("\udc80" <= char <= "\udcff" for char in name):
            raise ToolError(f"the name of {name!a} is not UTF-8", hint=f"rename it, or name it in {IGNORE_FILE}")
        if not path.is_file():
            raise ToolError(f"{folder / name} is neither a file nor a folder", hint=f"name it in {IGNORE_FILE}")
        try:
            content = _read_inside(path, root, limit - size)
        except OSError as error:
            raise ToolError(
                f"cannot read {folder / name}: {error.strerror}", hint=f"or name it in {IGNORE_FILE}"
            ) from error
        size += len(content or b"")
        if content is None or size > limit:
            raise ToolError(
                f"the code in {folder} is larger than {limit // 1024**2} MiB",
                hint=f"name data and environments in {folder / IGNORE_FILE}: data belongs in a volume",
            )
        files.append(ContextFile(name, content, os.access(path, os.X_OK)))
    if refused:
        hint = f"replace them with copies of their targets, or name them in {IGNORE_FILE}"
        raise ToolError("the code has links that an image cannot contain", hint=hint, problems=tuple(refused))
    kept = _drop_packed_charts(files)
    if os.path.lexists(root / REQUIREMENTS_FILE) and not any(file.path == REQUIREMENTS_FILE for file in kept):
        why = (
            f"is excluded from the image by {IGNORE_FILE}"
            if (root / REQUIREMENTS_FILE).is_file()
            else "is not a regular file"
        )
        raise ToolError(f"{folder / REQUIREMENTS_FILE} {why}", hint="include it with `!requirements.txt`, or rename it")
    return kept


def _read_inside(path: Path, root: Path, limit: int) -> bytes | None:
    """Return the content of a file that was found to be in `root`; None for more than `limit` bytes.

    Raises OSError, also where it has become a link to another place, or a pipe, since it was looked at.
    """
    target = path.resolve()
    if not target.is_relative_to(root):
        raise OSError(errno.ELOOP, "it is now a link to a place outside the folder", str(path))
    with os.fdopen(open_inside(root, target), "rb") as stream:
        # Checked before it is read: a sparse file may state more than the memory holds.
        return stream.read() if os.fstat(stream.fileno()).st_size <= limit else None


def _drop_packed_charts(files: list[ContextFile]) -> tuple[ContextFile, ...]:
    """Return `files` without packed charts that were generated, and what lies beside them for `helm repo`."""
    packed = {file.path for file in files if file.path.endswith(".tgz") and _is_generated_chart(file.content)}
    dropped = packed | {f"{path}.prov" for path in packed} | {_beside(path, "index.yaml") for path in packed}
    return tuple(file for file in files if file.path not in dropped)


def _is_generated_chart(archive: bytes) -> bool:
    try:
        return LOCK_FILE in parse_archive(archive).files
    except ToolError:
        return False


def _beside(path: str, name: str) -> str:
    return str(PurePosixPath(path).with_name(name))


def _walk(root: Path, rules: IgnoreRules) -> Iterator[tuple[Path, str]]:
    """Yield what is no folder, and links to folders that are not followed, with paths relative to `root`.

    What lies below a link to a folder has two names, and stays out if `rules` ignore one of them.
    """

    def refuse(error: OSError) -> None:
        raise ToolError(
            f"cannot read {error.filename}: {error.strerror}", hint=f"or name it in {IGNORE_FILE}"
        ) from error

    entries = 0
    for parent, folders, names in walk(root, on_error=refuse, follow_links=True):
        here = Path(parent)
        if here != root and {LOCK_FILE, CHART_FILE} <= {*names}:
            folders.clear()
            continue
        there = _require_below(here, root)
        for folder in sorted(folders):
            path = here / folder
            name = path.relative_to(root).as_posix()
            if rules.prunes(name) or rules.prunes((there / folder).as_posix()):
                folders.remove(folder)
            elif _find_fault(path, root, rules):
                folders.remove(folder)
                if not rules.ignores(name):
                    yield path, name
        folders.sort()
        kept = [
            file
            for file in sorted(names)
            if not rules.ignores((here / file).relative_to(root).as_posix())
            and not rules.ignores((there / file).as_posix())
        ]
        # Links can make many folders of few, and take long to follow.
        links = sum((here / folder).is_symlink() for folder in folders)
        entries += len(folders) + len(kept) + links * _LINK_WEIGHT
        if entries > TREE_LIMIT:
            raise ToolError(
                f"{root} holds more than {TREE_LIMIT} files and folders",
                hint=f"name data and environments in {root / IGNORE_FILE}: data belongs in a volume",
            )
        yield from ((here / file, (here / file).relative_to(root).as_posix()) for file in kept)


def _require_below(folder: Path, root: Path) -> Path:
    """Return the path of a folder relative to `root`, both without links; ToolError if it leads elsewhere by now."""
    target = folder.resolve()
    if not target.is_relative_to(root):
        raise ToolError(
            f"{folder} leads to {target} now", hint="let nothing change the code meanwhile, and run it again"
        )
    return target.relative_to(root)


def _find_fault(path: Path, root: Path, rules: IgnoreRules) -> str:
    """Return why a link cannot be followed; empty where it can, and for what is no link."""
    if not path.is_symlink():
        return ""
    try:
        target = path.resolve()
    except RuntimeError:  # until Python 3.13
        return f"leads to {find_target(path)}, which forms a loop"
    if not target.is_relative_to(root):
        return f"leads to {find_target(path)}, outside the code folder"
    if not target.exists():
        return f"leads to {find_target(path)}, which does not exist"
    if target in {parent.resolve() for parent in path.parents if parent.is_relative_to(root)}:
        return "leads into a folder that contains it"
    name = target.relative_to(root).as_posix()
    return f"leads to {name}, which is excluded from the image" if rules.ignores(name) else ""
