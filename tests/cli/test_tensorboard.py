"""`trainchart tensorboard` over local runs, in a real TensorBoard, and what it and `trainchart notebook` refuse."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.small_cluster.small_api import SmallApi, serve_small_api
from trainchart.actions.tensorboard import open_local
from trainchart.cli.app import app
from trainchart.cli.output import Format
from trainchart.cli.tensorboard import _print_address as print_address
from trainchart.errors import ToolError, TrainchartError

SECONDS = 120


def write_record(folder: Path, **facts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"release": folder.name, "chart": "mnist", "pods": [], **facts}))


def write_run(runs: Path, name: str, *, events: str = "claims/logs", is_over: bool = True) -> None:
    """Write what a local run with summaries leaves."""
    import tensorflow as tf

    folder = runs / name
    with tf.summary.create_file_writer(str(folder / events / "train")).as_default():
        tf.summary.scalar("loss", 0.5, step=7)
    write_record(folder, tensorboard=str(folder / "claims/logs"))
    if is_over:
        (folder / "result.json").write_text(json.dumps({"folders": {"tensorboard": [str(folder / events)]}}))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs", "mnist-1")
    write_run(tmp_path / "runs", "mnist-2", is_over=False)
    write_run(tmp_path / "runs", "own", events="claims/elsewhere")
    return tmp_path / "runs"


def test_local_runs_are_shown_under_their_names_until_a_signal(runs: Path, tmp_path: Path) -> None:
    names = ("mnist-1", "mnist-2", "own", "mnist-1")
    argv = [sys.executable, "-m", "trainchart", "tensorboard", *names, f"--runs-dir={runs}"]
    argv += ["--port=0", "--no-browser", "--format=json"]
    (tmp_path / "tmp").mkdir()
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            url = json.loads("".join(process.stdout.readline() for _ in range(3)))["url"]
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"{url}/data/runs", timeout=SECONDS) as answer:
                assert sorted(json.load(answer)) == ["mnist-1/train", "mnist-2/train", "own/train"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(OSError, match="refused"):
        opener.open(url, timeout=SECONDS)


@pytest.fixture
def api() -> Iterator[SmallApi]:
    """A cluster without any release."""
    with serve_small_api() as server:
        server.objects = {}
        yield server


def refuse(arguments: tuple[str, ...], folder: Path, api: SmallApi | None = None) -> tuple[int, str]:
    kubeconfig = str(api.write_kubeconfig(folder / "kubeconfig") if api else folder / "none")
    done = CliRunner().invoke(app, (*arguments, "--port=0"), env={"KUBECONFIG": kubeconfig})
    assert isinstance(done.exception, TrainchartError), done.output
    return done.exception.exit_code, done.exception.message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tensorboard", "mnist-1", "--all"), "name runs, or give --all, but not both"),
        (("tensorboard", "mnist-1", "--keep"), "--image, --set and --keep are for releases on a cluster"),
        (("tensorboard", "-n", "team"), "name the releases, or give --all"),
        (("tensorboard", "mnist-3"), "there is no local run 'mnist-3'"),
        (("notebook",), "name the releases, or give --all"),
        (("notebook", "exp", "--all"), "name releases, or give --all, but not both"),
    ],
)
def test_what_is_not_clear_is_refused(runs: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    options = (f"--runs-dir={runs}",) if "tensorboard" in arguments else ()
    code, output = refuse((*arguments, *options), tmp_path)
    assert code in (2, 7) and said in output


def test_local_runs_and_releases_are_not_mixed(runs: Path, tmp_path: Path, api: SmallApi) -> None:
    code, output = refuse(("tensorboard", "mnist-1", "exp", f"--runs-dir={runs}"), tmp_path, api)
    assert code == 2 and "exp is not a local run, but others are" in output


@pytest.mark.parametrize("command", ["tensorboard", "notebook"])
def test_a_release_that_is_not_there_is_named(tmp_path: Path, api: SmallApi, command: str) -> None:
    code, output = refuse((command, "exp", "-n", "team"), tmp_path, api)
    assert code == 9 and "there is no training run 'exp' in namespace team" in output
    code, output = refuse((command, "--all", "-n", "team"), tmp_path, api)
    assert code == 9 and "there is no training run in namespace team" in output


def test_a_run_without_summaries_is_named(tmp_path: Path) -> None:
    write_record(tmp_path / "runs" / "mnist-1")
    code, output = refuse(("tensorboard", f"--runs-dir={tmp_path / 'runs'}"), tmp_path)
    assert code == 7 and "nothing for TensorBoard in mnist-1" in output


def test_a_port_that_is_taken_is_named_at_once(runs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ("tensorboard", "mnist-1", f"--runs-dir={runs}", f"--port={port}"))
    assert isinstance(done.exception, ToolError)
    assert done.exception.message == (
        f"--port: cannot listen on port {port} of 127.0.0.1: another program listens there"
    )


def test_runs_that_were_moved_are_found(runs: Path, tmp_path: Path) -> None:
    moved = runs.rename(tmp_path / "moved")
    with open_local([moved / "mnist-1", moved / "mnist-2", moved / "own"], 0) as server:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{server.url}/data/runs", timeout=SECONDS) as answer:
            assert sorted(json.load(answer)) == ["mnist-1/train", "mnist-2/train", "own/train"]


@pytest.mark.parametrize("name", ["Exp", "exp 7", "a" * 54, "exp,7"])
def test_a_name_that_no_release_has_is_refused(tmp_path: Path, api: SmallApi, name: str) -> None:
    code, output = refuse(("tensorboard", name, "-n", "team"), tmp_path, api)
    assert code == 2 and "is not a release name" in output


def test_a_closed_output_is_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)  # as after `>&-`
    print_address("http://127.0.0.1:6006", Format.text)
    assert not capsys.readouterr().err
