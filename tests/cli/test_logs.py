"""`trainchart logs` over runs that are over, written here by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainchart.local.io.logs import stamp_of

_START = 1_800_000_000.0


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A failed run exp-1, and exp-2 that ran later and succeeded."""
    for number, failure in enumerate(({"at": _START + 10}, None), start=1):
        folder = tmp_path / ".trainchart/runs" / f"exp-{number}"
        (folder / "logs").mkdir(parents=True)
        pods = [
            {"label": label, "name": f"exp-{number}-{label}", "role": label[:-2]} for label in ("chief-0", "worker-0")
        ]
        (folder / "run.json").write_text(json.dumps({"release": folder.name, "chart": "mnist-0.1.0", "pods": pods}))
        (folder / "result.json").write_text(json.dumps({"failure": failure}))
        lines = [(1, "chief-0", "early"), (9, "worker-0", "ValueError: too fast"), (11, "chief-0", "peer lost")]
        for seconds, label, text in lines:
            with (folder / "logs" / f"{label}.log").open("a") as log:
                log.write(f"{stamp_of(_START + seconds)} {text} {number}\n")
    return tmp_path


def logs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainchart", "logs", *arguments],
        cwd=folder,
        # A name that is no local run's is looked for on a cluster, where there is one.
        env={**os.environ, "KUBECONFIG": str(folder / "none")},
        text=True,
        capture_output=True,
        timeout=60,
    )


EARLY, ERROR, LOST = "[chief-0] early 1", "[worker-0] ValueError: too fast 1", "[chief-0] peer lost 1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [EARLY, ERROR, LOST]),
        (["--tail", "1"], [LOST]),
        (["--role", "worker"], [ERROR]),
        (["--pod", "exp-1-worker-0"], [ERROR]),
        (["--pod", "worker-0"], [ERROR]),
        (["--since-failure"], [ERROR, LOST]),
        (["--follow"], [EARLY, ERROR, LOST]),
        (["--follow", "--tail", "1"], [LOST]),
    ],
)
def test_lines_are_merged_and_chosen(runs: Path, arguments: list[str], expected: list[str]) -> None:
    done = logs(runs, "exp-1", *arguments)
    assert done.stdout.splitlines() == expected
    assert done.returncode == 0


@pytest.mark.parametrize("more", [(), ("--tail", "1"), ("--follow",), ("--role", "worker")])
def test_logs_that_are_not_there_are_named(runs: Path, more: tuple[str, ...]) -> None:
    folder = runs / ".trainchart/runs/exp-1/logs"
    (folder / "worker-0.log").unlink()
    done = logs(runs, "exp-1", *more)
    assert done.returncode == 0
    where = f"in {folder.relative_to(runs)}: it was deleted, or the pod never started\n"
    assert done.stderr == f"note: no log of worker-0 {where}"
    shutil.rmtree(folder)
    done = logs(runs, "exp-1", *more)
    gone = "worker-0" if more == ("--role", "worker") else "chief-0, worker-0"
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"note: no log of {gone} {where}"


def test_the_last_run_is_the_default(runs: Path) -> None:
    assert logs(runs, "--tail", "1").stdout == "[chief-0] peer lost 2\n"


def test_lines_are_json_where_asked(runs: Path) -> None:
    done = logs(runs, "exp-1", "--tail", "1", "--format", "json")
    assert json.loads(done.stdout) == {"at": stamp_of(_START + 11), "pod": "chief-0", "text": "peer lost 1"}


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["x" * 300], 7, "there is no local run"),
        (["exp-9"], 7, "did you mean exp-"),
        (["exp-1", "--pod", "ps-0"], 7, "its pods: chief-0, worker-0"),
        (["exp-1", "--role", "chef"], 7, "exp-1 has no role 'chef'\nhint: its roles: chief, worker"),
        (["exp-1", "--role", "chief", "--pod", "worker-0"], 7, "its pods of the role chief: chief-0"),
        (["exp-2", "--since-failure"], 7, "no failure is recorded for exp-2"),
        (["--runs-dir", "elsewhere"], 7, "there are no local runs in elsewhere"),
    ],
)
def test_what_is_not_there_is_said(runs: Path, arguments: list[str], code: int, expected: str) -> None:
    done = logs(runs, *arguments)
    assert done.returncode == code
    assert expected in done.stderr
    assert done.stdout == ""
