"""Exports of models: which of those that a run has left is served, and as which version. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.errors import ToolError

MARK = "saved_model.pb"
LARGEST_VERSION = 2**63 - 1
_UNFINISHED = (".draft", ".old")
"""How the training library calls an export that is not in place."""


@dataclass(frozen=True)
class Export:
    """A SavedModel that a run has written."""

    folder: str
    step: int | None
    """None where nothing says it."""
    written_at: float

    @property
    def version(self) -> int:
        """The version as which it is served."""
        return self.step or 1


def is_in_place(folder: str) -> bool:
    return not folder.endswith(_UNFINISHED)


def read_step(folder: str, record: Mapping[str, Any]) -> int | None:
    """Return the step of an export: that of its record, else the number that its folder is named by."""
    step, name = record.get("step"), folder.rpartition("/")[2]
    if isinstance(step, int) and not isinstance(step, bool):
        return step if 0 <= step <= LARGEST_VERSION else None
    if re.fullmatch("[0-9]{1,19}", name) and int(name) <= LARGEST_VERSION:
        return int(name)
    return None


def choose_export(exports: Sequence[Export], step: int | None, run: str, *, goes_on: bool) -> Export:
    """Return the newest export of a run, or that of a step. Raises ToolError where there is none."""
    if not exports:
        name = shlex.quote(run)
        hint = (
            f"wait until it ends: trainchart wait {name}" if goes_on else f"see how it ended: trainchart status {name}"
        )
        raise ToolError(f"the run {run} has exported no model{' yet' if goes_on else ''}", hint=hint)
    newest_first = sorted(exports, key=lambda export: (export.written_at, export.folder), reverse=True)
    found = next((export for export in newest_first if step in (None, export.step)), None)
    if found is None:
        steps = sorted({export.step for export in exports if export.step is not None})
        known = f"its exports: {', '.join(map(str, steps))}" if steps else "leave --step out: its exports name no step"
        raise ToolError(f"the run {run} has no export of step {step}", hint=known)
    return found
