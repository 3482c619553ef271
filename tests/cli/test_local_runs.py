"""`trainchart list`, `status`, `wait`, `stop` and the others for local runs: no kubeconfig, no cluster."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from typer.testing import CliRunner, Result

from trainchart.cli.app import app
from trainchart.errors import ToolError, TrainingFailed, UsageError
from trainchart.local.io.release_lock import hold_lock
from trainchart_runtime.run.state import STOPPED, STOPPING, SUCCEEDED

RUNS = Path(".trainchart/runs")
_CHART = Path(__file__).parents[1] / "local" / "charts" / "trainer"


def make_run(release: str, verdict: str) -> None:
    """Write the folder of a run; it goes on where the verdict is empty, while its lock is held."""
    folder = RUNS / release
    folder.mkdir(parents=True)
    record = {"release": release, "chart": "mnist-0.1.0", "target": "mnist", "deciding": [], "pods": []}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "state.json").write_text(json.dumps({"phase": verdict or "Running"}))
    if verdict:
        (folder / "result.json").write_text(json.dumps({"verdict": verdict}))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished runs exp-2 and exp-10 in the current folder, and no cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_run("exp-10", STOPPED)
    make_run("exp-2", SUCCEEDED)


@pytest.fixture
def going() -> Iterator[list[int]]:
    """A run that goes on in this very process; gives the signals that it gets."""
    make_run("going", "")
    signals: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        signals.append(number)

    before = signal.signal(signal.SIGTERM, note)
    with hold_lock(RUNS, "going"):
        yield signals
    signal.signal(signal.SIGTERM, before)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_list_shows_local_runs_without_a_cluster(going: list[int]) -> None:
    done = call("list")
    assert done.exit_code == 0, done.exception
    rows = [line.split()[:3] for line in done.stdout.splitlines()[1:]]
    assert rows == [
        ["exp-2", "mnist-0.1.0", "Succeeded"],
        ["exp-10", "mnist-0.1.0", "Stopped"],
        ["going", "mnist-0.1.0", "Running"],
    ]
    assert {run["origin"] for run in json.loads(call("list", "--format", "json").stdout)} == {"local"}


DAMAGED = {
    "empty": b"",
    "cut off": b'{"release": "exp-3", "chart": "mnist-0.1.0", "pods": [{"la',
    "binary": b"\x00\xff\x80",
    "a list": b"[]",
    "pods of a wrong type": b'{"release": "exp-3", "chart": "mnist-0.1.0", "pods": [5]}',
    "a time of a wrong type": b'{"release": "exp-3", "chart": "c-1", "pods": [{"label": "worker-0", "name": "w", '
    b'"role": "worker"}], "startedAt": [5]}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_is_named_and_hides_no_run(content: bytes) -> None:
    make_run("exp-3", SUCCEEDED)
    (RUNS / "exp-3/run.json").write_bytes(content)
    done = call("list")
    assert done.exit_code == 0, done.exception
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == ["exp-2", "exp-10"]
    assert "note: .trainchart/runs/exp-3/run.json is damaged" in done.stderr
    for command in (("status",), ("why",), ("wait",)):
        error = call(*command, "exp-3").exception
        assert isinstance(error, ToolError), error
        assert error.message.startswith(".trainchart/runs/exp-3/run.json is damaged")
        assert "remove .trainchart/runs/exp-3" in error.hint


@pytest.mark.parametrize("content", list(DAMAGED.values())[:-1], ids=list(DAMAGED)[:-1])
def test_a_damaged_record_has_no_logs_and_is_not_resumed(content: bytes) -> None:
    make_run("exp-3", SUCCEEDED)
    (RUNS / "exp-3/run.json").write_bytes(content)
    for command in (("logs", "exp-3"), ("run", str(_CHART), "--release", "exp-3", "--resume")):
        error = call(*command).exception
        assert isinstance(error, ToolError), error
        assert "exp-3/run.json is damaged" in error.message


@pytest.mark.parametrize("options", ["{}x", '{"code": 5}', '{"claims": ["data"]}'])
def test_a_run_with_damaged_options_is_not_resumed(options: str) -> None:
    make_run("exp-3", SUCCEEDED)
    record = json.loads((RUNS / "exp-3/run.json").read_text())
    body = {**record, "values": {}, "options": options if options == "{}x" else json.loads(options)}
    (RUNS / "exp-3/run.json").write_text(json.dumps(body))
    error = call("run", str(_CHART), "--release", "exp-3", "--resume", "--dry-run").exception
    assert isinstance(error, ToolError), error
    assert "exp-3/run.json is damaged" in error.message


def test_no_run_at_all_is_no_error() -> None:
    done = call("list", "--runs-dir", "none")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no runs in none" in done.stderr


def test_list_goes_on_without_a_cluster_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("kubeconfig").write_text("broken: [")
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    done = call("list")
    assert done.exit_code == 0, done.exception
    assert "exp-10" in done.stdout
    assert "note: local runs only, since the cluster cannot be read" in done.stderr
    assert call("list", "-n", "team-a").exit_code != 0


@pytest.mark.parametrize("command", ["status", "why", "wait"])
def test_the_last_run_is_the_default(command: str) -> None:
    done = call(command)
    assert done.exit_code == 0, done.exception
    assert done.stdout.startswith("exp-2 (this machine, mnist-0.1.0): Succeeded")


def test_wait_fails_for_a_run_that_was_stopped() -> None:
    error = call("wait", "exp-10").exception
    assert isinstance(error, TrainingFailed)
    assert error.message == "exp-10: Stopped: The run was stopped on request"
    assert error.hint == "see: trainchart why exp-10"


def test_wait_gives_up_on_a_local_run_as_well(going: list[int]) -> None:
    error = call("wait", "going", "--timeout", "0").exception
    assert "not over within 0 s: going (this machine, mnist-0.1.0): Running" in str(error)


def test_stop_asks_the_process_of_the_run(going: list[int]) -> None:
    done = call("stop", "going", "--format", "json")
    assert going == [signal.SIGTERM]
    said = json.loads(done.stdout)
    assert (said["origin"], said["phaseBefore"], said["changed"]) == ("local", "Running", True)


def test_stop_does_not_ask_twice(going: list[int]) -> None:
    (RUNS / "going/state.json").write_text(json.dumps({"phase": STOPPING}))
    assert "nothing was changed" in call("stop", "going").stdout
    assert going == []


def test_stop_of_a_run_that_is_over_changes_nothing() -> None:
    assert "exp-2: the run is already over: Succeeded" in call("stop", "exp-2").stdout


def test_what_only_releases_can_do_names_the_local_way() -> None:
    error = call("resume", "exp-10").exception
    assert isinstance(error, UsageError)
    assert error.exit_code == 2
    assert error.hint.startswith("trainchart run mnist --resume --release exp-10;")


def test_a_hint_lists_runs_as_people_count() -> None:
    error = call("status", "other").exception
    assert isinstance(error, ToolError)
    assert error.hint == "runs there: exp-2, exp-10"


@pytest.mark.parametrize("command", ["status", "why", "wait", "stop", "logs", "rerun"])
def test_an_unknown_run_is_one_clear_error(command: str) -> None:
    error = call(command, "exp-3").exception
    assert isinstance(error, ToolError)
    assert error.message == "there is no local run 'exp-3' in .trainchart/runs, and no kubeconfig names a cluster"
    assert error.hint.startswith("did you mean exp-")


@pytest.mark.parametrize(
    ("verb", "release", "hint"),
    [
        ("suspend", "exp-2", "it has ended and holds no resources"),
        ("suspend", "going", "trainchart stop going"),
        ("resume", "going", "it is running"),
        ("resume", "exp-10", "trainchart run mnist --resume --release exp-10"),
        ("rerun", "exp-2", "trainchart run mnist --resume --release exp-2"),
    ],
)
def test_what_only_a_release_can_do(going: list[int], verb: str, release: str, hint: str) -> None:
    error = call(verb, release).exception
    assert isinstance(error, UsageError)
    assert error.hint == f"{hint}; for a release of that name on a cluster, add --namespace"
    assert going == []
