"""What outlives a launcher process: attempts, the outcome, and the shared marker of success.

The state folder lives as long as the pod. All files carry the run id, so a later run never sees an earlier
one's. Every write is whole or absent; a folder that cannot be written costs memory of restarts, not training.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_launcher.console import print_line
from trainchart_launcher.files import overwrite_file, read_file, replace_file
from trainchart_launcher.settings import Settings
from trainchart_runtime import contract
from trainchart_runtime.progress import COUNT_LIMIT, Progress, parse_progress
from trainchart_runtime.restart import Attempts

if TYPE_CHECKING:
    from trainchart_runtime.termination import Failure

_ATTEMPTS_FILE = "attempts.json"
_OUTCOME_FILE = "outcome.json"
_OWNER_FILE = "owner.json"
_FILE_LIMIT = 1 << 16
_PROGRESS_LIMIT = 1 << 20


class Memory(NamedTuple):
    """What an earlier launcher in this pod left behind."""

    attempts: Attempts
    program_was_running: bool
    """It never saw the end of its program: it was killed together with it."""
    failures: Sequence[Failure] = ()
    """The last ends of the program, oldest first."""


def find_progress_file(settings: Settings) -> str:
    return os.path.join(settings.state_dir, contract.PROGRESS_FILE_NAME)


def read_memory(settings: Settings) -> Memory:
    """Return the attempts of this run in this pod so far."""
    document = _read_own(settings, os.path.join(settings.state_dir, _ATTEMPTS_FILE)) or {}
    known = {name: document.get(name) for name in Attempts._fields}
    if not all(_is_like(known[name], default) for name, default in Attempts()._asdict().items()):
        return Memory(Attempts(), False)
    return Memory(
        Attempts(**known),  # type: ignore[arg-type]
        document.get("running") is True,
        _parse_failures(document.get("failures")),
    )


def _parse_failures(found: object) -> Sequence[Failure]:
    if not found:
        return ()
    # Only where a program has failed: a first start need not wait for this module.
    from trainchart_runtime.termination import parse_failures

    return parse_failures(found)


def _dump_failures(failures: Sequence[Failure]) -> List[Dict[str, Any]]:
    if not failures:
        return []
    from trainchart_runtime.termination import dump_failures

    return dump_failures(failures)


def _is_like(value: object, default: object) -> bool:
    """Say whether a value may stand for a default. The program can write here, and a number be of any size."""
    is_count = isinstance(value, int) and 0 <= value < COUNT_LIMIT
    return isinstance(value, type(default)) and (is_count or not isinstance(default, int))


def write_memory(settings: Settings, memory: Memory) -> None:
    failures = _dump_failures(memory.failures)
    document = {**memory.attempts._asdict(), "running": memory.program_was_running, "failures": failures}
    _write_own(settings, os.path.join(settings.state_dir, _ATTEMPTS_FILE), document)


def read_outcome(settings: Settings) -> Optional[str]:
    """Return the termination message of this run's end, if this task has come to one."""
    for path in (os.path.join(settings.state_dir, _OUTCOME_FILE), _shared_marker(settings)):
        document = _read_own(settings, path) if path else None
        if document and isinstance(document.get("message"), str):
            return str(document["message"])
    return None


def write_outcome(settings: Settings, message: bytes, succeeded: bool) -> None:
    """Remember how the task ended; success also where the pod's successor on another node finds it."""
    document = {"message": message.decode()}
    _write_own(settings, os.path.join(settings.state_dir, _OUTCOME_FILE), document)
    if succeeded and _shared_marker(settings):
        _write_own(settings, _shared_marker(settings), document)


def read_progress(settings: Settings) -> Progress:
    """Return the program's last report about itself."""
    try:
        return parse_progress(read_file(find_progress_file(settings), _PROGRESS_LIMIT).decode(errors="replace"))
    except OSError:
        return Progress()


class StepWatch:
    """Notices the first step that a program reports from now on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._before = self._look()

    def has_step(self) -> bool:
        return self._look() != self._before and read_progress(self._settings).step is not None

    def _look(self) -> Optional[Tuple[int, int]]:
        try:
            found = os.stat(find_progress_file(self._settings))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def write_termination(path: str, message: bytes) -> None:
    """Write the termination message in place: Kubernetes mounts the file, so it cannot be replaced."""
    try:
        overwrite_file(path, message)
    except OSError as err:
        print_line(f"cannot write the termination message: {err}")


def find_owner_file(settings: Settings) -> str:
    """Return where this pod claims its task; "" where there is nothing to claim.

    By the pod's name, which a StatefulSet gives to its pod's successors and to no other pod, and not by run: a
    zombie of an earlier run writes into the same folder.
    """
    folder, pod = _shared_folder(settings), settings.cluster.pod_name(settings.task)
    return os.path.join(folder, "owners", f"{_quote(pod)}.owner") if folder else ""


def read_owner_id(settings: Settings) -> str:
    """Return the id with which this pod has claimed its task; "" if it never has."""
    document = _read_own(settings, os.path.join(settings.state_dir, _OWNER_FILE)) or {}
    owner_id = document.get("id")
    return owner_id if isinstance(owner_id, str) else ""


def write_owner_id(settings: Settings, owner_id: str) -> None:
    _write_own(settings, os.path.join(settings.state_dir, _OWNER_FILE), {"id": owner_id})


def _shared_marker(settings: Settings) -> str:
    """Return the marker's path; "" without a local folder, or a run id to tell it from another run's.

    By the pod's name, since releases that share a volume may have runs of one name.
    """
    folder, pod = _shared_folder(settings) if settings.run_id else "", settings.cluster.pod_name(settings.task)
    return os.path.join(folder, _quote(settings.run_id), f"{_quote(pod)}.done") if folder else ""


def _shared_folder(settings: Settings) -> str:
    """Return our folder beside the checkpoints; "" where there are none, or in an object store."""
    if not settings.checkpoints_dir or "://" in settings.checkpoints_dir:
        return ""
    return os.path.join(settings.checkpoints_dir, ".trainchart")


def _quote(name: str) -> str:
    """Return `name` as the name of one file."""
    return re.sub(r"[^A-Za-z0-9_.-]|^\.+", lambda match: f"%{ord(match[0][0]):02X}", name)


def _read_own(settings: Settings, path: str) -> Optional[Mapping[str, Any]]:
    """Return the JSON object in `path` if it belongs to this run, else None."""
    try:
        document = json.loads(read_file(path, _FILE_LIMIT))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as err:
        print_line(f"cannot read {path}, continuing without it: {err}")
        return None
    if not isinstance(document, dict) or document.get("runId") != settings.run_id:
        return None
    return document


def _write_own(settings: Settings, path: str, document: Mapping[str, Any]) -> None:
    text = json.dumps({"runId": settings.run_id, **document})
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        replace_file(path, text.encode())
    except OSError as err:
        print_line(f"cannot write {path}, continuing without it: {err}")
