"""Reads what an export says of itself in a folder of checkpoints, which anyone may have filled."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from trainchart.actions.support.checkpoint_folder import read_evaluations
from trainchart.checkpoints.saved_model import FOLDER, RECORD_FILE, SUMS_FILE, SavedModel
from trainchart.errors import ToolError
from trainchart.host.files import read_bytes
from trainchart.json_documents import parse_json

_SUMS_LIMIT = 16 * 1024 * 1024
_RECORD_LIMIT = 64 * 1024
_WHO = "the training library of trainchart writes it into each export; train again with a newer version of it"


def read_saved_model(folder: Path) -> SavedModel:
    """Return the export in a folder of checkpoints.

    Raises:
        ToolError: there is none, or it does not say what it is.
    """
    export = folder / FOLDER
    if not os.path.lexists(export):
        raise ToolError(
            f"there is no export: {export} is not there",
            hint="the training library of trainchart exports the model when the training is over: docs/training.md",
        )
    sums = _read(export / SUMS_FILE, _SUMS_LIMIT)
    try:
        record = parse_json(_read(export / RECORD_FILE, _RECORD_LIMIT))
    except ValueError as error:
        raise ToolError(f"{export / RECORD_FILE} cannot be read: {error}", hint=_WHO) from error
    step = record.get("step") if isinstance(record, dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ToolError(f"{export / RECORD_FILE} does not say which step the export is from", hint=_WHO)
    problems: list[str] = []
    evaluations = read_evaluations(folder, problems)
    if problems:
        # Else what the run has reported would count in their place.
        raise ToolError(f"the evaluation of the export is not known: {problems[0]}", hint="fix or remove the file")
    # NaN and Infinity as well: what this step has not been worth counts for more than what the run reports.
    metrics = {name: float(value) for name, value in evaluations.get(step, {}).items()}
    content = f"sha256:{hashlib.sha256(sums).hexdigest()}"
    return SavedModel(content, step, _text(record.get("run")), _text(record.get("image")), metrics)


def _read(path: Path, limit: int) -> bytes:
    if not os.path.lexists(path):
        raise ToolError(f"the export has no {path.name}: {path} is not there", hint=_WHO)
    return read_bytes(path, limit=limit, follow_links=False)


def _text(value: Any) -> str:
    return value[:1000] if isinstance(value, str) else ""
