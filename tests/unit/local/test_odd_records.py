"""Records of local runs in which something has another type or size: each run is shown, or named as damaged."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trainchart.actions.support.local_logs import read_local_logs
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.errors import ToolError
from trainchart.local.io.release_folder import refuse_damaged
from trainchart.local.io.run_report import read_report
from trainchart.reports.list_table import list_lines
from trainchart.reports.report_json import describe_report
from trainchart.reports.text import status_lines
from trainchart.reports.why import why_lines

NOW = 1_800_000_000.0
DOCUMENTS: dict[str, dict[str, Any]] = {
    "run.json": {
        "release": "m-1", "chart": "m-0.1.0", "chartIdentity": "a", "command": "trainchart run m", "python": "3.11",
        "options": {"code": "", "claims": {}}, "host": "h", "startedAt": NOW, "strategy": "single",
        "roles": {"worker": {"replicas": 1, "cpu": "1"}}, "hyperparameters": {"a": 1}, "values": {"env": {"A": "b"}},
        "code": {"folder": "code", "commit": "abc", "isDirty": False, "sha256": "x"}, "deciding": ["worker-0"],
        "pods": [{"label": "worker-0", "name": "m-1-worker-0", "role": "worker", "state": "s", "log": "l"}],
    },
    "state.json": {
        "phase": "Running", "since": NOW, "updated": NOW, "pods": {"worker-0": {"state": "running", "attempt": 1}},
        "history": [{"at": NOW, "phase": "Running", "message": "m"}],
    },
    "result.json": {
        "verdict": "Failed", "seconds": 3.0, "finishedAt": NOW, "signal": None, "step": 5, "examplesPerSecond": 3.0,
        "nothingDone": "", "metrics": {"worker-0": {"loss": 0.5}}, "pods": [{"pod": "worker-0", "nanMetrics": ["x"]}],
        "failure": {
            "pod": "worker-0", "cause": "program-exit", "sentence": "s", "error": "e", "hint": "on POD", "exit_code": 1,
            "at": NOW, "log_file": "l", "last_lines": ["a"],
        },
    },
}  # fmt: skip
ODD = (None, True, -1, 1e308, 10**400, "x\\1\n\x1b[2J", [], {}, [["x"]], {"x": {"y": 1}}, [None], float("nan"))


def list_places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in items:
        yield from list_places(value, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = put(document[path[0]], path[1:], value)
    return changed


def show(folder: Path) -> None:
    """Do all that commands do with a run; ToolError is how they refuse one."""
    for shown in (
        lambda: read_report(folder),
        lambda: list(read_local_logs(folder, LogsFilter(since_failure=True), print)),
    ):
        try:
            refuse_damaged(folder)
            report: Any = shown()
        except ToolError:
            continue
        if not isinstance(report, list):
            text = "\n".join([*list_lines([report]), *status_lines(report), *why_lines(report)])
            assert "\x1b" not in text.replace("\x1b[0m", "")
            json.dumps(describe_report(report), allow_nan=False)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_odd_value_is_shown_or_named_as_damage(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "m-1"
    (folder / "logs").mkdir(parents=True)
    for path in list_places(DOCUMENTS[name]):
        for value in ODD:
            for other, document in DOCUMENTS.items():
                changed = put(document, path, value) if other == name else document
                (folder / other).write_text(json.dumps(changed))
            try:
                show(folder)
            except Exception as error:
                pytest.fail(f"{name} {path} = {str(value)[:40]!r}: {type(error).__name__}: {error}")
