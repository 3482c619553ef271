"""`trainchart logs --follow` on a cluster: what is printed on stderr when the log of a pod is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from trainchart.actions.support import cluster_logs
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.reports.report import PodReport, Report, TrainingKey

GONE = "unable to retrieve container logs for containerd://4f0d6c1b"
KEY = TrainingKey("team-a", "exp1", "mnist")
WORKER = PodReport("exp1-mnist-worker-0", "worker-0", "worker", "Running", "node1", 0, 0.0, {}, False)
RUNNING = Report(KEY, 0.0, "Running", "record", pods=(WORKER,))


class LostLogs:
    """An API whose kubelet has lost the log of the only pod, and names another container each time."""

    def __init__(self) -> None:
        self.asked = 0

    def read_log(self, *_: Any, **__: Any) -> list[str]:
        self.asked += 1
        return [f"{GONE}{self.asked}"]


def test_follow_says_once_that_a_log_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    api = LostLogs()
    reports: Iterator[Report] = iter([RUNNING, RUNNING, RUNNING, replace(RUNNING, phase="Succeeded")])
    monkeypatch.setattr(cluster_logs, "open_cluster", lambda place: (api, "team-a"))
    monkeypatch.setattr(cluster_logs, "read_training", lambda *_: (KEY, None))
    monkeypatch.setattr(cluster_logs, "diagnose", lambda *_: next(reports))
    monkeypatch.setattr(cluster_logs, "_POLL_SECONDS", 0.0)
    notes: list[str] = []
    wanted = LogsFilter("", "", None, True, False)
    assert not list(cluster_logs.read_cluster_logs(Place("", "team-a"), "exp1", wanted, notes.append))
    [note] = notes
    assert note.startswith("note: node node1 no longer has the log of worker-0") and GONE in note
    assert api.asked == 3
