"""Read the logs of a local run: which pods, which lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from trainchart.actions.support.log_filter import LogsFilter
from trainchart.errors import ToolError
from trainchart.local.io.logs import follow_lines, read_lines, stamp_of
from trainchart.local.io.release_folder import LOGS, RESULT_FILE, RUN_FILE, read_record
from trainchart.local.io.release_lock import is_running
from trainchart.reports.log_line import LogLine
from trainchart_runtime.progress import parse_number

FAILURE_LEAD_SECONDS = 2.0
"""A program prints its error some time before it ends."""


def read_local_logs(folder: Path, wanted: LogsFilter, note: Callable[[str], None]) -> Iterator[LogLine]:
    """Yield the lines asked for, oldest first; `note` is called with the logs of a run that are not there.

    Raises:
        ToolError: there is no such pod or failure.
    """
    logs = _find_logs(folder, wanted)
    absent = [label for label, path in logs.items() if path.is_symlink() or not path.is_file()]
    # While a run goes on, a pod may not have written yet.
    if absent and not is_running(folder.parent, folder.name):
        note(f"note: no log of {', '.join(absent)} in {folder / 'logs'}: it was deleted, or the pod never started")
    since = _find_failure_stamp(folder) if wanted.since_failure else ""
    if wanted.follow:
        lines = follow_lines(logs, lambda: not is_running(folder.parent, folder.name), wanted.tail)
    else:
        lines = read_lines(logs)
    chosen = (line for line in lines if line.at >= since)
    if wanted.tail is not None and not wanted.follow:
        return iter(deque(chosen, maxlen=wanted.tail))
    return chosen


def _find_logs(folder: Path, wanted: LogsFilter) -> dict[str, Path]:
    pods = read_record(folder / RUN_FILE).get("pods", [])
    chosen = [
        pod["label"]
        for pod in pods
        if wanted.role in ("", pod["role"]) and wanted.pod in ("", pod["label"], pod["name"])
    ]
    if not chosen:
        roles = list(dict.fromkeys(pod["role"] for pod in pods))
        if wanted.role and wanted.role not in roles:
            raise ToolError(f"{folder.name} has no role {wanted.role!r}", hint=f"its roles: {', '.join(roles)}")
        known = ", ".join(pod["label"] for pod in pods if wanted.role in ("", pod["role"]))
        of = f" of the role {wanted.role}" if wanted.role else ""
        raise ToolError(f"{folder.name} has no pod {wanted.pod!r}{of}", hint=f"its pods{of}: {known}")
    logs = folder / LOGS
    if logs.is_symlink():
        raise ToolError(f"{logs} is a link: logs are read from the folder of their run only", hint="remove it")
    return {label: logs / f"{label}.log" for label in chosen}


def _find_failure_stamp(folder: Path) -> str:
    failure = read_record(folder / RESULT_FILE).get("failure")
    at = parse_number(failure.get("at")) if isinstance(failure, dict) else None
    if at is None:
        raise ToolError(f"no failure is recorded for {folder.name}", hint="leave --since-failure out")
    return stamp_of(at - FAILURE_LEAD_SECONDS)
