"""The use case `trainchart logs`: which release, which pods, which lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainchart.errors import ToolError, TrainchartError
from trainchart.local.logs import LogLine, follow_lines, read_lines, stamp_of
from trainchart.local.release_folder import RESULT_FILE, RUN_FILE, read_record

FAILURE_LEAD_SECONDS = 2.0
"""A program prints its error some time before it ends."""


@dataclass(frozen=True)
class LogsRequest:
    runs_folder: Path
    release: str = ""
    """Empty: the release that ran last."""
    role: str = ""
    pod: str = ""
    """Short (worker-1) or full name."""
    tail: int | None = None
    follow: bool = False
    since_failure: bool = False


def read_logs(request: LogsRequest) -> Iterator[LogLine]:
    """Yield the lines asked for, oldest first.

    :raises ToolError: where there is no such run, pod or failure.
    """
    folder = _find_release(request)
    logs = _find_logs(folder, request)
    since = _find_failure_stamp(folder) if request.since_failure else ""
    lines = follow_lines(logs, (folder / RESULT_FILE).exists, request.tail) if request.follow else read_lines(logs)
    wanted = (line for line in lines if line.at >= since)
    if request.tail is not None and not request.follow:
        return iter(deque(wanted, maxlen=request.tail))
    return wanted


def has_local_run(runs_folder: Path, release: str) -> bool:
    """Return whether a local run of that name is kept in `runs_folder`."""
    return _is_run(runs_folder / release)


def _find_release(request: LogsRequest) -> Path:
    if request.release:
        folder = request.runs_folder / request.release
        if not _is_run(folder):
            raise ToolError(f"there is no local run {request.release!r}", hint=_known_hint(request.runs_folder))
        return folder
    runs = sorted(request.runs_folder.glob(f"*/{RUN_FILE}"), key=lambda path: path.stat().st_mtime)
    if not runs:
        raise ToolError(f"there are no local runs in {request.runs_folder}", hint="start one: trainchart run MODEL")
    return runs[-1].parent


def _is_run(folder: Path) -> bool:
    try:
        return (folder / RUN_FILE).is_file()
    except OSError:
        # A name that is too long for any file.
        return False


def _known_hint(runs_folder: Path) -> str:
    names = sorted(path.parent.name for path in runs_folder.glob(f"*/{RUN_FILE}"))
    return f"runs there: {', '.join(names)}" if names else f"{runs_folder} holds no runs; see --runs-dir"


def _find_logs(folder: Path, request: LogsRequest) -> dict[str, Path]:
    pods = read_record(folder / RUN_FILE).get("pods", [])
    chosen = [
        pod["label"]
        for pod in pods
        if request.role in ("", pod["role"]) and request.pod in ("", pod["label"], pod["name"])
    ]
    if not chosen:
        known = ", ".join(pod["label"] for pod in pods)
        asked = request.pod or request.role
        raise ToolError(f"{folder.name} has no pod {asked!r}", hint=f"its pods: {known}")
    return {label: folder / "logs" / f"{label}.log" for label in chosen}


def _find_failure_stamp(folder: Path) -> str:
    failure = read_record(folder / RESULT_FILE).get("failure")
    if not failure:
        raise TrainchartError(f"no failure is recorded for {folder.name}", hint="leave --since-failure out")
    return stamp_of(failure["at"] - FAILURE_LEAD_SECONDS)
