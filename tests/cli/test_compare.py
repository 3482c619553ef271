"""`trainchart compare`: local runs and releases beside each other, for people and programs, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_job, make_pods, make_record, make_sets, make_state
from tests.small_cluster.small_api import SmallApi, serve_small_api
from trainchart.cli.app import app
from trainchart.errors import NotFound, ToolError, UsageError
from trainchart.reports.text import describe_time

RUNS = Path(".trainchart/runs")


def make_run(release: str, **hyperparameters: Any) -> None:
    """Write the folder of a run that has succeeded, with a loss of ten times its rate."""
    folder = RUNS / release
    folder.mkdir(parents=True)
    record = {
        "release": release,
        "chart": "mnist-0.1.0",
        "target": "mnist",
        "strategy": "single",
        "hyperparameters": hyperparameters,
        "values": {"hyperparameters": hyperparameters},
        "startedAt": NOW,
        "deciding": ["worker-0"],
        "pods": [],
    }
    result = {
        "verdict": "Succeeded",
        "finishedAt": NOW + 60,
        "step": 1000,
        "metrics": {"worker-0": {"loss": hyperparameters.get("rate", 0) * 10}},
    }
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "state.json").write_text(json.dumps({"phase": "Succeeded"}))
    (folder / "result.json").write_text(json.dumps(result))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished runs exp-1 and exp-2 in the current folder, and no cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_run("exp-1", rate=0.1, seed=1)
    make_run("exp-2", rate=0.01, seed=1)


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallApi]:
    """A cluster with exp1, which runs."""
    with serve_small_api() as server:
        progress = {"at": NOW, "attempt": 1, "step": 70, "metrics": {"loss": 0.5, "evaluator/accuracy": 0.75}}
        state = make_state("Running", progress=progress)
        server.objects = {
            "statefulsets": make_sets(),
            "pods": make_pods(),
            "jobs": [make_job()],
            "configmaps": [make_record(state)],
        }
        monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "kubeconfig")))
        yield server


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("compare", *arguments))


def test_compare_shows_what_differs_and_the_best() -> None:
    done = call("exp-1", "exp-2")
    assert done.exit_code == 0, done.exception
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert rows == [
        "SETTINGS exp-1 exp-2",
        "hyperparameters.rate 0.1 0.01",
        "RESULTS",
        "phase Succeeded Succeeded",
        "attempts 0 0",
        "last step 1000 1000",
        f"started {describe_time(NOW)} {describe_time(NOW)}",
        "duration 1 min 1 min",
        "examples/s - -",
        "METRICS",
        "loss 1 0.1 *",
        "* the best of its row",
        "3 other settings are the same; --all shows them",
    ]
    assert "hyperparameters.seed" in call("exp-1", "exp-2", "--all").stdout


def test_json_names_the_runs_and_every_row() -> None:
    document = json.loads(call("exp-1", "exp-2", "--format", "json").stdout)
    assert [run["release"] for run in document["runs"]] == ["exp-1", "exp-2"]
    [row] = document["metrics"]
    assert (row["name"], row["better"], [cell["best"] for cell in row["cells"]]) == ("loss", "lower", [False, True])


def test_local_run_beside_a_release(api: SmallApi) -> None:
    document = json.loads(call("exp-1", "exp1", "--format", "json").stdout)
    assert [(run["origin"], run["namespace"]) for run in document["runs"]] == [("local", None), ("cluster", NAMESPACE)]
    rows = {row["name"]: row["cells"] for part in ("settings", "metrics") for row in document[part]}
    assert [cell["value"] for cell in rows["strategy"]] == ["single", "parameter-server"]
    assert [cell["value"] for cell in rows["evaluator/accuracy"]] == [None, 0.75]
    assert rows["hyperparameters.rate"][1]["known"] is False


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("exp-1",), UsageError, "compare needs at least two runs"),
        (("exp-1", "exp-2", "exp-1"), UsageError, "'exp-1' is given twice"),
        (("exp-1", "exp-3"), ToolError, "there is no local run 'exp-3'"),
        (("exp-1", ""), UsageError, "the name of a run is empty"),
    ],
)
def test_compare_refuses_what_it_cannot_compare(arguments: tuple[str, ...], error: type, words: str) -> None:
    done = call(*arguments)
    assert isinstance(done.exception, error)
    assert words in str(done.exception)


def test_every_missing_run_is_named_at_once() -> None:
    done = call("exp-3", "exp-1", "other")
    assert isinstance(done.exception, ToolError)
    assert "'exp-3'" in done.exception.message
    assert ["'other'" in problem.message for problem in done.exception.problems] == [True]


def test_same_release_under_two_names_is_refused(api: SmallApi) -> None:
    done = call("exp1", "exp1/mnist")
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "'exp1' and 'exp1/mnist' are the same run"
    assert isinstance(call("exp1", "exp9", "-n", NAMESPACE).exception, NotFound)


def test_folders_of_local_runs_stand_beside_releases(api: SmallApi, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(RUNS / "exp-2")
    folders = (f"./{RUNS}/exp-1", f"{tmp_path}/link")
    document = json.loads(call(*folders, "exp1", "-n", NAMESPACE, "--format", "json").stdout)
    assert [run["title"] for run in document["runs"]] == ["exp-1", "exp-2", "exp1"]
    assert call("exp-1", folders[0]).exception.message.endswith("are the same run")  # type: ignore[union-attr]
    assert isinstance(call("exp-1", f"./{'x' * 5000}").exception, NotFound)


def test_damaged_run_is_an_error_of_its_own() -> None:
    (RUNS / "exp-2" / "run.json").write_text("{")
    done = call("exp-1", "exp-2")
    assert isinstance(done.exception, ToolError)
    assert "damaged" in done.exception.message


def on_terminal(*arguments: str, **environment: str) -> str:
    """Return what `compare` writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, True)
    command = [sys.executable, "-m", "trainchart", "compare", *arguments]
    done = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    subprocess.run(command, stdout=theirs, env=done, check=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    return text.decode()


def test_colours_are_for_terminals_that_want_them() -> None:
    assert "\x1b[1;32m0.1 *" in on_terminal("exp-1", "exp-2")
    for plain in (
        on_terminal("exp-1", "exp-2", NO_COLOR="1"),
        on_terminal("exp-1", "exp-2", "--no-color"),
        on_terminal("exp-1", "exp-2", TERM="dumb"),
        call("exp-1", "exp-2").stdout,
    ):
        assert "\x1b" not in plain
        assert "0.1 *" in plain


def test_hostile_names_do_not_steer_the_terminal() -> None:
    make_run("exp-5", **{"\x1b[31mred\u202e": "\x1b]0;title\x07", "rate": 1})
    shown = call("exp-1", "exp-5").stdout
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "hyperparameters.red" in shown


def test_list_shows_local_runs_below_releases(api: SmallApi) -> None:
    done = CliRunner().invoke(app, ("list",))
    assert done.exit_code == 0, done.exception
    releases, local = done.stdout.split("\n\n")
    assert [line.split()[1] for line in releases.splitlines()] == ["RELEASE", "exp1"]
    assert [line.split()[0] for line in local.splitlines()] == ["LOCAL", "exp-1", "exp-2"]
    assert "rate=0.01, seed=1" in local
