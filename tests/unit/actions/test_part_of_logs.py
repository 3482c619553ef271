"""How much of the logs of a release `why` and the console read, whatever its programs print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trainchart.actions.support import cluster_logs
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.cluster_logs import read_cluster_logs, read_last_lines
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.reports.report import PodReport, Report, TrainingKey

KEY = TrainingKey("team-a", "exp1", "mnist")
PODS = tuple(
    PodReport(
        f"exp1-mnist-worker-{number}", f"worker-{number}", "worker", "Running", "node1", number // 99, 0.0, {}, False
    )
    for number in range(100)
)
"""The last one has restarted: it has two logs."""
REPORT = Report(KEY, 0.0, "Running", "record", pods=PODS)


class Logs:
    """Notes how much is asked of each log."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read_log(self, pod: str, *_: Any, newest: int, **__: Any) -> list[str]:
        self.asked.append(newest)
        return [f"2026-01-02T03:04:05.000000000Z line of {pod}"]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Logs]:
    logs = Logs()
    monkeypatch.setattr(cluster_logs, "open_cluster", lambda place: (logs, "team-a"))
    monkeypatch.setattr(cluster_logs, "read_training", lambda *_: (KEY, None))
    monkeypatch.setattr(cluster_logs, "diagnose", lambda *_: REPORT)
    yield logs


def read(wanted: LogsFilter) -> tuple[set[str], list[str]]:
    notes: list[str] = []
    lines = read_cluster_logs(Place("", "team-a"), "exp1", wanted, notes.append)
    return {line.label for line in lines}, notes


def test_why_reads_a_part_of_each_log(api: Logs) -> None:
    logs, _ = read_last_lines(Place("", "team-a"), REPORT)
    assert {line.label for lines in logs for line in lines} == {"worker-99", *(f"worker-{n}" for n in range(15))}
    assert api.asked == [512 * 1024] * 17


def test_page_reads_a_part_of_some_logs(api: Logs) -> None:
    read_of, notes = read(LogsFilter(tail=300, is_brief=True))
    assert read_of == {"worker-99", *(f"worker-{number}" for number in range(63))}
    assert api.asked == [128 * 1024] * 65
    assert notes == ["note: these are the logs of 64 of 100 pods; trainchart logs exp1 prints all"]


def test_logs_command_reads_all_of_every_log(api: Logs) -> None:
    read_of, notes = read(LogsFilter())
    assert (len(read_of), notes) == (100, [])
    assert api.asked == [0] * 101
