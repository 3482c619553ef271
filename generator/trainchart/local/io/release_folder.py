"""The folder of one local release: its name, its lock, what a resumed or fresh run keeps, and its files.

Holds claims/ (what survives), pods/ (what lives as long as a pod), logs/, values.yaml (what the user set), run.json
(what was asked for), state.json (what goes on) and result.json (how it ended).
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainchart.errors import ToolError
from trainchart.host.files import read_text
from trainchart.host.trees import remove_tree
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.local.io.release_lock import hold_lock
from trainchart.name_order import natural_key
from trainchart_runtime.io.files import SpecialFileError, open_regular

if TYPE_CHECKING:
    from trainchart.local.plan import LocalPlan

RUN_FILE = "run.json"
STATE_FILE = "state.json"
RESULT_FILE = "result.json"
VALUES_FILE = "values.yaml"
LOGS = "logs"
UNFINISHED_FILE = "unfinished"
"""There until the files of a plan are written, and while they are removed: what a killed call leaves may be removed."""
_POD_KEYS = {"label", "name", "role"}
_TOLD_LIMIT = 1024 * 1024
"""Characters."""
_RELEASE_LENGTH = 53
"""Helm's limit."""
_LABEL = re.compile(r"[a-z0-9-]+-[0-9]+")
"""Of a pod; names its log and its folder."""


class Existing(Enum):
    """What to do with a release whose folder already exists."""

    REFUSE = "refuse"
    RESUME = "resume"
    FRESH = "fresh"


def choose_release(runs_folder: Path, chart_name: str) -> str:
    """Return `<chart>-<n>` with the number after the highest in use."""
    stem = re.sub(r"[^a-z0-9-]+", "-", chart_name.lower())[: _RELEASE_LENGTH - 5].strip("-") or "run"
    names = [path.name for path in runs_folder.iterdir()] if runs_folder.is_dir() else []
    numbers = [int(found[1]) for name in names if (found := re.fullmatch(rf"{stem}-(\d{{1,4}})", name))]
    return f"{stem}-{max(numbers, default=0) + 1}"


def claim_release(runs_folder: Path, chart_name: str) -> str:
    """Choose a release and make its folder, so that no other run chooses the same."""
    _make(runs_folder)
    while True:
        release = choose_release(runs_folder, chart_name)
        try:
            (runs_folder / release).mkdir()
        except FileExistsError:
            continue
        except OSError as err:
            raise _error("make", runs_folder / release, err) from err
        return release


@contextmanager
def open_release(runs_folder: Path, release: str, existing: Existing) -> Iterator[Path]:
    """Lock the release, and give its folder as `existing` says; the lock ends with the block or the process.

    A folder that is new and still without a run when the block fails is removed again. A folder with anything
    in it that no run has made is never touched.
    """
    if existing is Existing.RESUME:
        require_startable(runs_folder, release, existing)
    _make(runs_folder)
    folder = runs_folder.resolve() / release
    with hold_lock(runs_folder, release):
        try:
            if _is_unfinished(folder):
                _remove(folder)
            require_startable(runs_folder, release, existing)
            is_used = folder.exists() and any(folder.iterdir())
            if is_used and existing is Existing.FRESH:
                _clear(folder)
            elif is_used:
                (folder / UNFINISHED_FILE).unlink(missing_ok=True)
                # New pods have empty folders of their own; only claims and logs outlive them.
                with contextlib.suppress(OSError):
                    remove_tree(folder / "pods")
            folder.mkdir(exist_ok=True)
            if not holds_run(folder):
                _mark_unfinished(folder)
        except OSError as err:
            raise _error("prepare", folder, err) from err
        try:
            yield folder
        finally:
            if not (folder / RUN_FILE).exists():
                with contextlib.suppress(OSError):
                    _remove(folder)


def _is_unfinished(folder: Path) -> bool:
    """Say whether a call was killed that made or removed the files of the release."""
    return os.path.lexists(folder / UNFINISHED_FILE) and not holds_run(folder)


def _mark_unfinished(folder: Path) -> None:
    if not os.path.lexists(folder / UNFINISHED_FILE):
        (folder / UNFINISHED_FILE).touch(exist_ok=False)


def _clear(folder: Path) -> None:
    """Remove all but the mark, by which the next call knows what this one leaves if it is killed."""
    _mark_unfinished(folder)
    (folder / RUN_FILE).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.name != UNFINISHED_FILE:
            remove_tree(path)


def _remove(folder: Path) -> None:
    _clear(folder)
    (folder / UNFINISHED_FILE).unlink()
    folder.rmdir()


def require_startable(runs_folder: Path, release: str, existing: Existing) -> None:
    """Raise ToolError where `existing` does not allow to start the release, for what its folder holds."""
    folder = runs_folder.resolve() / release
    is_used = folder.is_dir() and any(folder.iterdir())
    if not is_used:
        if existing is Existing.RESUME:
            _refuse_resuming(runs_folder, release)
        return
    if not holds_run(folder) and not _is_unfinished(folder):
        refuse_damaged(folder)
        raise ToolError(
            f"{folder} was not created by a run of {release}, so it is left alone",
            hint="choose another name with --release, or another folder with --runs-dir",
        )
    if holds_run(folder) and existing is Existing.REFUSE:
        raise ToolError(
            f"the release {release} exists already: {folder}",
            hint="--resume continues from its checkpoint, --fresh removes it and starts over",
        )


def write_plan(plan: LocalPlan, record: Mapping[str, Any]) -> None:
    """Make all folders and files of the plan; run.json comes last and says that the release has a run."""
    folder = Path(plan.release_folder)
    try:
        if (folder / LOGS).is_symlink():
            raise SpecialFileError(folder / LOGS, "it is a link")
        (folder / LOGS).mkdir(exist_ok=True)
        for pod in plan.pods:
            for path in pod.folders:
                Path(path).mkdir(parents=True, exist_ok=True)
            for file in pod.files:
                target = Path(file.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch(mode=0o600 if file.is_secret else 0o644)
                target.write_bytes(file.content)
        _write_private(folder / VALUES_FILE, dump_mapping(record["values"]))
        write_record(folder / RUN_FILE, record)
        (folder / RESULT_FILE).unlink(missing_ok=True)
        (folder / UNFINISHED_FILE).unlink(missing_ok=True)
    except OSError as err:
        raise _error("write", Path(err.filename or folder), err) from err


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all."""
    try:
        _write_private(path, json.dumps(record, indent=2) + "\n")
    except OSError as err:
        raise _error("write", path, err) from err


def read_record(path: Path) -> Mapping[str, Any]:
    """Return the record, empty where there is none or it is broken."""
    try:
        record = parse_json(read_text(path, follow_links=False))
    except (ToolError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def read_told(path: Path) -> str:
    """Return what a program or its launcher has written; empty where there is no regular file."""
    try:
        with os.fdopen(open_regular(path), encoding="utf-8", errors="replace") as file:
            return file.read(_TOLD_LIMIT)
    except OSError:
        return ""


def read_result(folder: Path) -> Mapping[str, Any] | None:
    """Return how a release has run before; None for one that is new."""
    return read_record(folder / RESULT_FILE) if holds_run(folder) else None


def _write_private(path: Path, text: str) -> None:
    """Write a file that other users cannot read: values may hold what is secret."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        # What lies there was left by a killed run, or came with files of others and may be a link.
        temporary.unlink(missing_ok=True)
        temporary.touch(mode=0o600, exist_ok=False)
        temporary.write_text(text)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def holds_run(folder: Path) -> bool:
    """Say whether `write_plan` has finished here: only then may anything be removed."""
    record = read_record(folder / RUN_FILE)
    pods = record.get("pods")
    is_whole = isinstance(pods, list) and all(map(_is_pod, pods))
    return record.get("release") == folder.name and "chart" in record and is_whole


def _is_pod(pod: object) -> bool:
    if not isinstance(pod, dict) or not all(isinstance(pod.get(key), str) for key in _POD_KEYS):
        return False
    return bool(_LABEL.fullmatch(pod["label"]))


def refuse_damaged(folder: Path) -> None:
    """Raise ToolError where the folder has the record of a run, but not one that can be read."""
    # Unlike Path.exists, this takes a name of any length.
    if os.path.exists(folder / RUN_FILE) and not holds_run(folder):  # noqa: PTH110
        raise damaged_record(folder)


def damaged_record(folder: Path) -> ToolError:
    """Return the error for a run whose record cannot be read."""
    return ToolError(
        f"{folder / RUN_FILE} is damaged: it does not contain the record of a run",
        hint=f"keep what you need of {folder / 'claims'}, then remove {folder}, or choose another --release",
    )


def _refuse_resuming(runs_folder: Path, release: str) -> NoReturn:
    names = (path.parent.name for path in runs_folder.glob(f"*/{RUN_FILE}") if holds_run(path.parent))
    known = sorted(names, key=natural_key)
    close = difflib.get_close_matches(release, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    hint += f"releases there: {', '.join(known)}" if known else f"{runs_folder} holds no releases; see --runs-dir"
    raise ToolError(f"there is no release {release} to resume", hint=hint)


def _make(runs_folder: Path) -> None:
    try:
        if not runs_folder.is_dir():
            runs_folder.mkdir(parents=True, exist_ok=True)
            # A folder of ours, and nothing in it is worth a commit.
            (runs_folder / ".gitignore").write_text("*\n")
    except OSError as err:
        raise _error("make", runs_folder, err) from err


def _error(action: str, path: Path, err: OSError) -> ToolError:
    return ToolError(
        f"cannot {action} {path}: {err.strerror or err}",
        hint="choose a writable folder with enough space: --runs-dir",
    )
