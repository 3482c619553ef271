"""Finds what a local run has left in its volumes: checkpoints, SavedModels, TensorBoard's event files, anything at all.

Reads only. Looks wherever the program may have written, whatever it called its folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from trainchart.host.trees import list_parents, walk
from trainchart.local.plan import LocalPlan
from trainchart.local.result import Outputs

_CLOCK_SECONDS = 0.05
"""A file system's clock may lag behind the process's by a tick."""
_EVENTS = ".tfevents."
_SAVED_MODEL = "saved_model.pb"


def find_outputs(plan: LocalPlan, since: float) -> Outputs:
    """Return what the run has left in its claims, and whether any of it is newer than `since` (Unix seconds).

    In a claim that is a folder of the user's own, only what is newer is the run's.
    """
    since -= _CLOCK_SECONDS
    files = {folder: list(_find_own(plan, folder, since)) for folder in dict.fromkeys(plan.outputs)}
    everything = [path for found in files.values() for path in found]
    of_pods = [path for pod in plan.pods for path in _walk(pod.pod_folder)]
    events = [
        _find_events([path for path in found if _is_events(path)], plan.tensorboard_logs)
        for found in (*files.values(), of_pods)
    ]
    return Outputs(
        checkpoints=plan.checkpoints if _is_written(plan.checkpoints, everything) else "",
        saved_models=tuple(sorted({str(path.parent) for path in everything if path.name == _SAVED_MODEL})),
        events=tuple(dict.fromkeys(filter(None, events))),
        claims=tuple((name, folder) for name, folder in plan.claims.items() if _has_files(folder)),
        holds_files=_holds_files(plan),
        written=_find_written(everything, since),
        is_changed=any(_is_newer(path, since) for path in everything),
    )


def holds_outputs(plan: LocalPlan) -> bool:
    """Return whether an earlier start may have left anything; what an object store holds is not known here."""
    return bool(plan.checkpoints and not plan.checkpoints.startswith("/")) or _holds_files(plan)


def _find_own(plan: LocalPlan, folder: str, since: float) -> Iterator[Path]:
    is_of_run = Path(folder).is_relative_to(plan.release_folder)
    found = (path for path in _walk(folder) if not _is_launchers(path, plan.checkpoints))
    return (path for path in found if is_of_run or _is_newer(path, since))


def _walk(folder: str) -> Iterator[Path]:
    for parent, _, names in walk(folder):
        yield from (Path(parent, name) for name in names)


def _find_written(files: list[Path], since: float) -> tuple[str, ...]:
    """Return the SavedModels that are newer, then the other files; events are left out."""
    newer = [path for path in files if not _is_events(path) and _is_newer(path, since)]
    models = {str(path.parent) for path in newer if path.name == _SAVED_MODEL}
    others = {str(path) for path in newer if not models or models.isdisjoint(list_parents(str(path)))}
    return (*sorted(models), *sorted(others))


def _is_launchers(path: Path, checkpoints: str) -> bool:
    """Return whether the launcher has written the file, to say which pod owns the checkpoints."""
    return bool(checkpoints) and path.is_relative_to(Path(checkpoints, ".trainchart"))


def _is_events(path: Path) -> bool:
    return _EVENTS in path.name


def _find_events(files: list[Path], usual: str) -> str:
    """Return the folder that holds all these event files: the one that the chart names, where it does."""
    if usual and files and all(path.is_relative_to(usual) for path in files):
        return usual
    return os.path.commonpath([path.parent for path in files]) if files else ""


def _is_written(checkpoints: str, files: list[Path]) -> bool:
    """Return whether the folder holds more than events; what an object store holds is not known here."""
    if not checkpoints.startswith("/"):
        return bool(checkpoints)
    return any(path.is_relative_to(checkpoints) and not _is_events(path) for path in files)


def _holds_files(plan: LocalPlan) -> bool:
    return any(not _is_launchers(path, plan.checkpoints) for folder in plan.outputs for path in _walk(folder))


def _has_files(folder: str) -> bool:
    return next(_walk(folder), None) is not None


def _is_newer(path: Path, since: float) -> bool:
    try:
        # A copy keeps the time of its original, and only the second one says when it came here.
        return max(path.stat().st_mtime, path.stat().st_ctime) >= since
    except OSError:
        return False
