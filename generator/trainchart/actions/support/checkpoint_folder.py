"""Reads a folder of checkpoints, which anyone may have filled: follows no link, waits for no pipe, within bounds."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from trainchart.checkpoints.listing import (
    MOST_LISTED,
    NO_MARKER,
    Checkpoint,
    CheckpointList,
    group_names,
    parse_evaluations,
)
from trainchart.errors import ToolError
from trainchart.host.files import read_bytes
from trainchart.json_documents import parse_json
from trainchart_training.saving import catalogue
from trainchart_training.saving.origin import ORIGIN_FILE, SIZE_LIMIT, Origin, parse_origin

EVALUATIONS_FILE = "evaluations.json"
OWNERS_FOLDER = ".trainchart/owners"
"""Where launchers note which pod may train: see fencing.md."""
_OWNER = ".owner"
_MARKER_LIMIT = 16 * 1024 * 1024
_MARKERS_LIMIT = 256 * 1024 * 1024
"""Bytes of all markers that are read for one list."""
_EVALUATIONS_LIMIT = 16 * 1024 * 1024
_MOST_OWNERS = 1000
_FOREIGN = (
    f"there is neither {ORIGIN_FILE} nor a marker, so the training library did not write these checkpoints. It is not "
    "known whether they are complete, or how a run continues from them: the program decides both"
)


def read_list(folder: Path) -> CheckpointList:
    """Return what the folder holds. Raises ToolError where it is not a folder, or cannot be read."""
    parts = group_names(_list_names(folder))
    problems: list[str] = []
    origin = _read_origin(folder, problems)
    evaluations = read_evaluations(folder, problems)
    steps = sorted(parts, reverse=True)
    budget = _MARKERS_LIMIT
    found = []
    for step in steps[:MOST_LISTED]:
        checkpoint, used = _read_checkpoint(folder, step, parts[step], evaluations.get(step, {}), budget)
        budget -= used
        if not _is_removed(folder, step, parts[step]):
            found.append(checkpoint)
    if found and origin is None and not problems and all(each.problem == NO_MARKER for each in found):
        problems.append(_FOREIGN)
    return CheckpointList(str(folder), found, origin, problems, max(0, len(steps) - MOST_LISTED))


def _is_removed(folder: Path, step: int, names: Sequence[str]) -> bool:
    """Say whether a training has removed a checkpoint while it was looked at: it takes the marker away first."""
    marker = catalogue.marker_name(step)
    return marker in names and not os.path.lexists(folder / marker)


def list_parts(folder: Path) -> dict[int, list[str]]:
    """Return the names of every checkpoint's files, by step, without a limit: to remove them, names are enough."""
    return group_names(_list_names(folder))


def _list_names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ToolError(
            f"cannot read {folder}: {reason}", hint="give a folder with checkpoints, or a local run: trainchart list"
        ) from error
    except ValueError as error:
        raise ToolError(f"cannot read {str(folder)!r}: {error}") from error


def _read_checkpoint(
    folder: Path, step: int, names: Sequence[str], metrics: Mapping[str, float | str], budget: int
) -> tuple[Checkpoint, int]:
    """Return one checkpoint, and the bytes of its marker."""
    sizes, times, odd = _examine(folder, names)
    marker_file = catalogue.marker_name(step)
    own = {name: size for name, size in sizes.items() if ".json" not in name}
    written_at = max((times[name] for name in own), default=max(times.values(), default=0.0))
    base = Checkpoint(step, files=own, written_at=written_at, metrics=metrics)
    if marker_file not in names:
        return _with(base, NO_MARKER), 0
    if sizes.get(marker_file, 0) > min(budget, _MARKER_LIMIT):
        return _with(base, f"{marker_file} is too large to be a marker"), 0
    try:
        content = read_bytes(folder / marker_file, limit=_MARKER_LIMIT, follow_links=False)
        marker = catalogue.parse_marker(content.decode())
    except (ToolError, ValueError) as error:
        reason = error.message if isinstance(error, ToolError) else f"{marker_file} cannot be read: {error}"
        return _with(base, " ".join(reason.split())[:300]), sizes.get(marker_file, 0)
    problem = catalogue.find_damage(marker, own)
    if f"{catalogue.prefix(step)}.index" not in marker.files:
        problem = f"{marker_file} does not name the index"
    strange = next((name for name in marker.files if name in odd), "")
    if strange:
        problem = f"{strange} is {odd[strange]}"
    return (
        Checkpoint(step, problem[:300], marker, own, written_at, metrics),
        len(content),
    )


def _with(checkpoint: Checkpoint, problem: str) -> Checkpoint:
    return Checkpoint(checkpoint.step, problem, None, checkpoint.files, checkpoint.written_at, checkpoint.metrics)


def _examine(folder: Path, names: Sequence[str]) -> tuple[dict[str, int], dict[str, float], dict[str, str]]:
    """Return sizes and times of the regular files among `names`, and what the others are."""
    sizes: dict[str, int] = {}
    times: dict[str, float] = {}
    odd: dict[str, str] = {}
    for name in names:
        with suppress(OSError):
            facts = os.lstat(folder / name)
            if stat.S_ISREG(facts.st_mode):
                sizes[name], times[name] = facts.st_size, facts.st_mtime
            else:
                odd[name] = "a link" if stat.S_ISLNK(facts.st_mode) else "not a file"
    return sizes, times, odd


def _read_origin(folder: Path, problems: list[str]) -> Origin | None:
    path = folder / ORIGIN_FILE
    if not os.path.lexists(path):
        return None
    try:
        return parse_origin(read_bytes(path, limit=SIZE_LIMIT, follow_links=False).decode())
    except (ToolError, ValueError) as error:
        problems.append(f"{ORIGIN_FILE} cannot be read: {error}")
        return None


def read_evaluations(folder: Path, problems: list[str]) -> Mapping[int, Mapping[str, float | str]]:
    """Return the evaluations of a folder by step; none where they cannot be read, which `problems` then says."""
    path = folder / EVALUATIONS_FILE
    if not os.path.lexists(path):
        return {}
    try:
        return parse_evaluations(parse_json(read_bytes(path, limit=_EVALUATIONS_LIMIT, follow_links=False)))
    except (ToolError, ValueError) as error:
        problems.append(f"{EVALUATIONS_FILE} cannot be read: {error}")
        return {}


def find_users(folder: Path) -> list[tuple[str, str]]:
    """Return the pods that may still train in the folder, and the file that says so of each."""
    owners = folder / OWNERS_FOLDER
    try:
        with os.scandir(owners) as entries:
            names = sorted(entry.name for entry in islice(entries, _MOST_OWNERS))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ToolError(f"cannot read {owners}: {(error.strerror or str(error)).lower()}") from error
    return [(name[: -len(_OWNER)], str(owners / name)) for name in names if name.endswith(_OWNER)]
