"""What a pod of a local run begins with, whatever its program has put in the place of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainchart.local.io import pod_runner
from trainchart.local.io.pod_runner import PodRunner
from trainchart.local.pod_plan import PodPlan


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "message", "nothing"])
def test_a_termination_message_begins_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    message, precious = tmp_path / "termination-log", tmp_path / "precious"
    precious.write_text("precious")
    if kind == "pipe":
        os.mkfifo(message)
    elif kind == "link":
        message.symlink_to("precious")
    elif kind == "folder":
        (message / "more").mkdir(parents=True)
    elif kind == "message":
        message.write_text("{}")
    monkeypatch.setattr(pod_runner, "PodProcess", lambda plan: plan)
    plan = PodPlan(
        name="exp-worker-0",
        label="worker-0",
        role="worker",
        argv=(),
        shown_argv=(),
        environment={},
        secrets=frozenset(),
        working_directory=str(tmp_path),
        pod_folder=str(tmp_path),
        folders=(),
        files=(),
        paths={},
        log_file=str(tmp_path / "worker-0.log"),
        termination_file=str(message),
        state_folder=str(tmp_path),
        stop_grace_seconds=1,
        max_restarts=0,
    )
    runner = PodRunner(plan, lambda label, lines: None)
    runner.start()
    runner.log.close()
    assert message.read_bytes() == b""
    assert not message.is_symlink()
    assert precious.read_text() == "precious"
