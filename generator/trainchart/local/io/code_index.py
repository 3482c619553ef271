"""Remembers on this machine which folder holds the code of an image, so that a bare archive can run here.

A small JSON file, from image repository to absolute folders; nothing breaks when it is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.host.files import read_text
from trainchart.host.user_folders import find_user_folder
from trainchart.json_documents import parse_json

_FOLDERS_KEPT = 5
"""Of one repository."""


def index_path(environment: Mapping[str, str]) -> Path:
    """Return where the index of this user lies (XDG base directories)."""
    return find_user_folder("XDG_DATA_HOME", ".local/share", environment) / "code.json"


def remember_code(repository: str, folder: Path, index: Path | None = None) -> None:
    """Remember that the code of `repository`'s images lies in `folder`. Failing to write is not an error.

    The index is a convenience: generating a chart in a read-only home must work. Projects that share a repository are
    remembered beside each other.
    """
    path = index or index_path(os.environ)
    known = _read(path)
    own = str(folder.absolute())
    others = [each for each in known.get(repository, ()) if each != own and Path(each).is_dir()]
    known[repository] = [own, *others][:_FOLDERS_KEPT]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One name, so that what a killed writer left is overwritten; of two at a time, either may win.
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(json.dumps(known, indent=2, sort_keys=True))
        draft.replace(path)
    except OSError:
        return


def recall_code(repository: str, index: Path | None = None) -> tuple[Path, ...]:
    """Return the folders remembered for `repository`, the last one first.

    Raises:
        ToolError: none of them exists any more.
    """
    path = index or index_path(os.environ)
    known = [Path(each) for each in _read(path).get(repository, ())]
    found = tuple(folder for folder in known if folder.is_dir())
    if known and not found:
        raise ToolError(
            f"the code of {repository} was in {known[0]}, which no longer exists",
            hint="give its current folder with --code FOLDER",
        )
    return found


def _read(path: Path) -> dict[str, list[str]]:
    try:
        document = parse_json(read_text(path))
    except (ToolError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    listed = {key: value for key, value in document.items() if isinstance(value, list)}
    return {key: [each for each in value if isinstance(each, str)] for key, value in listed.items()}
