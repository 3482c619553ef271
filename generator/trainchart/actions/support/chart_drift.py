"""What a run says of a generated chart folder that is not as its lock remembers it. `check`, `package` and `verify`
refuse such a chart; a run only needs that it renders."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from trainchart.archive.lock import (
    LOCK_FILE,
    Drift,
    DriftKind,
    Lock,
    find_drift,
    incomplete_chart,
    parse_lock,
    restore_hint,
)
from trainchart.errors import Problem, RenderError, TrainchartError
from trainchart.host.files import read_text, read_tree


def find_edits(chart: Path) -> tuple[Problem, ...]:
    """Return the notes on a generated chart folder whose files were edited, added or removed by hand since."""
    lock, drift = _read_drift(chart)
    missing = [found.path for found in drift if found.kind is DriftKind.missing]
    edited = [found.path for found in drift if found.kind is not DriftKind.missing]
    notes = []
    if lock is not None and missing:
        notes.append(Problem(_tell(missing, "is missing"), str(chart), restore_hint(missing, lock)))
    if edited:
        hint = "move the change into the model spec, and run trainchart generate"
        notes.append(Problem(_tell(edited, "has changed"), str(chart), hint))
    return tuple(notes)


def _tell(paths: list[str], what: str) -> str:
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{others} {what} since it was generated, which check, package and verify refuse"


def refuse_incomplete(chart: Path, cause: RenderError) -> None:
    """Raise ToolError where a chart does not render and files of it are gone, which is the likely reason."""
    lock, drift = _read_drift(chart)
    missing = [found.path for found in drift if found.kind is DriftKind.missing and _is_rendered(found.path)]
    if lock is not None and missing:
        raise incomplete_chart(str(chart), missing, lock) from cause


def _is_rendered(path: str) -> bool:
    return path.startswith("templates/") or path in ("values.yaml", "values.schema.json")


def _read_drift(chart: Path) -> tuple[Lock | None, list[Drift]]:
    """Return the lock of a chart folder, and what is not as it says."""
    path = chart / LOCK_FILE
    if path.is_file():
        with suppress(TrainchartError):  # a lock that cannot be read is for `check` to refuse
            lock = parse_lock(read_text(path))
            return lock, find_drift(lock, read_tree(chart))
    return None, []
