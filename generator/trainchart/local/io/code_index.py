"""Remembers on this machine which folder holds the code of an image, so that a bare archive can run here.

A small JSON file, from image repository to absolute folder; nothing breaks when it is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.json_documents import parse_json


def index_path(environment: Mapping[str, str]) -> Path:
    """Return where the index of this user lies (XDG base directories)."""
    base = environment.get("XDG_DATA_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    return root / "trainchart" / "code.json"


def remember_code(repository: str, folder: Path, index: Path | None = None) -> None:
    """Remember that the code of `repository`'s images lies in `folder`. Failing to write is not an error.

    The index is a convenience: generating a chart in a read-only home must work.
    """
    path = index or index_path(os.environ)
    known = {**_read(path), repository: str(folder.absolute())}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # One name, so that what a killed writer left is overwritten; of two at a time, either may win.
        draft = path.with_name(f".{path.name}.new")
        draft.write_text(json.dumps(known, indent=2, sort_keys=True))
        draft.replace(path)
    except OSError:
        return


def recall_code(repository: str, index: Path | None = None) -> Path | None:
    """Return the folder remembered for `repository`, or None.

    Raises:
        ToolError: that folder no longer exists.
    """
    path = index or index_path(os.environ)
    text = _read(path).get(repository)
    if text is None:
        return None
    folder = Path(text)
    if not folder.is_dir():
        raise ToolError(
            f"the code of {repository} was in {folder}, which is gone",
            hint="say where it is now: --code FOLDER",
        )
    return folder


def _read(path: Path) -> dict[str, str]:
    try:
        document = parse_json(path.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {key: value for key, value in document.items() if isinstance(value, str)}
