"""`trainchart serve` and `trainchart predict` as a user calls them, with the real server on a small model."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.serving.running import wait_until
from tests.serving.small_models import save_half
from tests.support.command_line import call, make_environment
from trainchart.serving.io import server_process
from trainchart_training.leading.export_record import write_record
from trainchart_training.saving.origin import Origin

pytestmark = pytest.mark.tensorflow

SPEC = Path(__file__).parents[2] / "chart-templates" / "model-server" / "tests" / "digits-prod.yaml"
CLAIM = "half-1-half-checkpoints"
SUMS = "SHA256SUMS"


def add_run(project: Path, release: str, export: Path | None) -> Path:
    """Write the folder of a run, with a copy of `export`, and return the export's folder."""
    run = project / ".trainchart" / "runs" / release
    run.mkdir(parents=True)
    record = {"release": release, "chart": "half-0.1.0", "deciding": [], "pods": [], "startedAt": 1.0}
    (run / "run.json").write_text(json.dumps(record))
    claim = run / "claims" / f"{release}-half-checkpoints"
    if export is not None:
        shutil.copytree(export, claim / "saved_model")
    return claim / "saved_model"


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save_half(tmp_path_factory.mktemp("export") / "saved_model")
    write_record(str(folder), Origin(), 40)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, export: Path) -> Path:
    """A project with the run half-1, whose export is whole, and the chart digits-prod, which pins another."""
    project = tmp_path_factory.mktemp("project")
    add_run(project, "half-1", export)
    (project / "models").mkdir()
    shutil.copy(SPEC, project / "models" / SPEC.name)
    assert call(project, "generate", "digits-prod").returncode == 0
    return project


class Serving:
    """A `trainchart serve` that goes on."""

    def __init__(self, project: Path, *arguments: str) -> None:
        self.project = project
        # Not in the group of the tests, so that a signal to its group is the terminal's Ctrl-C.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainchart", "serve", *arguments],
            cwd=project,
            # Relative, as a user may set it.
            env={**make_environment(project), "TMPDIR": "."},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.printed, self.notes = "", ""
        self._threads = [threading.Thread(target=self._read, args=(name,)) for name in ("stdout", "stderr")]
        for thread in self._threads:
            thread.start()

    def _read(self, name: str) -> None:
        for line in getattr(self.process, name):
            if name == "stdout":
                self.printed += line
            else:
                self.notes += line

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.printed or self.process.poll() is not None, text)
        assert text in self.printed, self.notes

    def wait(self) -> int:
        code = self.process.wait(30)
        for thread in self._threads:
            thread.join(30)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()


@pytest.fixture(scope="module")
def serving(project: Path) -> Iterator[Serving]:
    """The run half-1, served on free ports."""
    serving = Serving(project, "half-1", "--port", "0")
    try:
        serving.wait_for("trainchart predict")
        yield serving
    finally:
        serving.close()


@pytest.fixture(scope="module")
def url(serving: Serving) -> str:
    found = re.search(r"http://127\.0\.0\.1:[0-9]+", serving.printed)
    assert found is not None
    return found[0]


def paste(serving: Serving, start: str) -> str:
    """Run the line that was printed, as a user pastes it, and return what it prints."""
    line = next(line.strip() for line in serving.printed.splitlines() if line.strip().startswith(start))
    line = line.replace("trainchart predict", f"{sys.executable} -m trainchart predict")
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=serving.project,
        env=make_environment(serving.project),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_served_and_says_how_it_is_asked(serving: Serving) -> None:
    assert "half, version 40, answers after " in serving.printed
    assert "the export of step 40 of the run half-1" in serving.printed
    assert "takes any number of examples, each with:\n  x  one float32 number\nreturns for each:\n  y  one" in (
        serving.printed
    )
    assert "other signatures: classify, pair, picky, regress, reverse, spin" in serving.printed


def test_the_printed_lines_work_when_they_are_pasted(serving: Serving) -> None:
    assert json.loads(paste(serving, "curl")) == {"predictions": [2.0]}
    assert paste(serving, "echo") == "y  2\n"


def test_the_server_shows_its_own_lines(serving: Serving) -> None:
    assert re.search(r"version 40 of half serves, content sha256:[0-9a-f]{64}", serving.notes)
    assert "loading the export of step 40 of the run half-1 as half, version 40" in serving.notes


def test_only_this_machine_can_ask(url: str) -> None:
    other = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    for address in {*other, "127.0.0.2"} - {"127.0.0.1"}:
        with pytest.raises(OSError), socket.create_connection((address, int(url.rpartition(":")[2])), 2):
            pass


@pytest.mark.parametrize(
    ("content", "words", "printed"),
    [
        ("3.0", [], "y  3.5\n"),
        ("[3.0, 5]", [], "example  output  value\n0        y       3.5\n1        y       4.5\n"),
        ('{"x": 3.0}', [], "y  3.5\n"),
        ('{"instances": [3.0]}', [], "y  3.5\n"),
        ('{"inputs": {"x": [3.0]}}', [], "y  3.5\n"),
        ('{"a": [1, 2], "b": 4}', ["--signature", "pair"], "sum    3\ntwice  8\n"),
        ('[{"a": [1, 2], "b": 4}]', ["--signature", "pair"], "sum    3\ntwice  8\n"),
        ('{"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [4]}}', [], "sum    3\ntwice  8\n"),
        ("1", ["--signature", "spin", "--model", "half"], "sum  65536\n"),
        ('"ab"', ["--signature", "reverse"], 'length      2\ntext_bytes  {"b64": "YWJhYg=="}\n'),
    ],
)
def test_a_file_of_json_is_an_example(url: str, tmp_path: Path, content: str, words: list[str], printed: str) -> None:
    (tmp_path / "example.json").write_text(content)
    done = call(tmp_path, "predict", "example.json", "--url", url, *words)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_arrays_of_numpy_are_examples(url: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([3.0, 5.0]))
    np.savez(tmp_path / "pair.npz", a=np.ones((1, 2), np.float32), b=np.array([4]))
    done = call(tmp_path, "predict", "x.npy", "--url", url, "--format", "json")
    expected = {"model": "half", "signature": "serving_default", "examples": 2, "outputs": {"y": [3.5, 4.5]}}
    assert json.loads(done.stdout) == expected
    done = call(tmp_path, "predict", "pair.npz", "--url", url, "--signature", "pair")
    assert done.stdout == "sum    2\ntwice  8\n", done.stderr


@pytest.mark.parametrize(
    ("content", "words", "code", "told"),
    [
        ('["a"]', [], 4, ["example.json does not fit the model: input x:", "serving_default takes x float32 [?]"]),
        ("[[1.0, 2.0]]", [], 4, ["the shape is [1,2], but the model takes float32 [?]"]),
        ('{"z": 1}', [], 4, ["the model has no input z"]),
        ("[1,", [], 7, ["example.json is not JSON", "correct the JSON there"]),
        ("NaN", [], 7, ["which is not JSON"]),
        ("1", ["--signature", "other"], 2, ["half has no signature 'other'", "its signatures: classify, pair"]),
        ("1", ["--model", "other"], 7, ["serves no model other"]),
        ("1", ["--url", "http://127.0.0.1:1"], 7, ["no model server answers at", "trainchart serve RUN"]),
        ("1", ["--url", "ftp://localhost"], 2, ["is not the address of a model server"]),
    ],
)
def test_what_is_wrong_is_said(
    url: str, tmp_path: Path, content: str, words: list[str], code: int, told: list[str]
) -> None:
    (tmp_path / "example.json").write_text(content)
    done = call(tmp_path, "predict", "example.json", "--url", url, *words)
    assert done.returncode == code, done.stderr
    for each in told:
        assert each in done.stderr


def test_a_request_that_is_too_large_is_refused(url: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full(2_000_000, 0.123456789))
    done = call(tmp_path, "predict", "x.npy", "--url", url)
    assert done.returncode == 4, done.stderr
    assert "x.npy is too large for the server" in done.stderr


def test_a_port_that_is_taken_is_named(project: Path, url: str) -> None:
    port = url.rpartition(":")[2]
    done = call(project, "serve", "half-1", "--port", port)
    assert done.returncode == 7
    assert f"--port: cannot listen on port {port} of 127.0.0.1: another program listens there" in done.stderr
    assert "--port 0" in done.stderr


def test_ctrl_c_drains_and_leaves_nothing(serving: Serving, project: Path) -> None:
    """The last test of the shared server."""
    os.killpg(serving.process.pid, signal.SIGINT)
    assert serving.wait() == 130
    assert "draining: finishing requests in flight" in serving.notes
    assert "drained: all requests have ended" in serving.notes
    assert list(project.glob("trainchart-serve-*")) == []


def test_a_damaged_export_is_not_served(project: Path, export: Path) -> None:
    damaged = add_run(project, "half-2", export)
    (damaged / "fingerprint.pb").write_bytes(b"")
    serving = Serving(project, "half-2", "--port", "0")
    assert serving.wait() == 6, serving.notes
    assert serving.printed == ""
    assert "error: the export of step 40 of the run half-2 is not served: the files differ from" in serving.notes
    assert "changed: fingerprint.pb" in serving.notes


def test_a_chart_serves_only_the_content_that_it_pins(project: Path, export: Path) -> None:
    chart = ("charts/digits-prod", "--port", "0", "--format", "json")
    done = call(project, "serve", *chart)
    assert done.returncode == 7
    assert "in the claim exp-7-mnist-checkpoints, which no local run in " in done.stderr
    assert "trainchart serve charts/digits-prod --model FOLDER" in done.stderr
    serving = Serving(project, *chart, "--model", str(export))
    assert serving.wait() == 6, serving.notes
    found = re.search(r"the content hash is (sha256:[0-9a-f]{64}), but sha256:9f86", serving.notes)
    assert found is not None, serving.notes


def test_a_chart_is_served_and_ends_with_its_caller(project: Path, export: Path) -> None:
    import hashlib

    content = f"sha256:{hashlib.sha256((export / SUMS).read_bytes()).hexdigest()}"
    sets = f"model.content={content},model.claim={CLAIM},batching.maxExamples=4"
    serving = Serving(project, "charts/digits-prod", "--set", sets, "--port", "0", "--format", "json")
    try:
        wait_until(lambda: serving.printed.endswith("}\n") or serving.process.poll() is not None, "the document")
        ready: dict[str, Any] = json.loads(serving.printed)
        assert (ready["model"], ready["version"], ready["signature"]) == ("digits", 200, "serving_default")
        assert ready["signatures"]["pair"]["inputs"]["a"] == {"type": "float32", "shape": [None, 2]}
        assert ready["source"].endswith(f"{CLAIM}/saved_model")
    finally:
        serving.process.kill()
        serving.wait()
    host, port = ready["url"].removeprefix("http://").split(":")
    end = time.monotonic() + 20
    while _answers(host, int(port)):
        assert time.monotonic() < end, "the server outlives the command"
        time.sleep(0.1)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["half-9"], 7, ["no local run 'half-9'", "did you mean half-"]),
        (["half-3"], 7, ["the run half-3 has exported no model"]),
        (["half-1", "--step", "41"], 7, ["no export of step 41", "its exports: 40"]),
        (["half-1", "--set", "a=b"], 2, ["are for charts"]),
        (["charts/digits-prod", "--step", "3"], 2, ["--step is for runs"]),
        (["charts/digits-prod", "--model", "."], 7, ["is not an export: it has no saved_model.pb"]),
        (["charts/none"], 7, ["charts/none"]),
        (["digits-prod"], 7, ["serve the chart: trainchart serve charts/digits-prod"]),
    ],
)
def test_what_cannot_be_served_is_refused(project: Path, words: list[str], code: int, told: list[str]) -> None:
    if not (project / ".trainchart" / "runs" / "half-3").exists():
        add_run(project, "half-3", None)
    done = call(project, "serve", *words)
    assert done.returncode == code, done.stderr
    for each in told:
        assert each in done.stderr


def test_the_chart_of_a_training_is_not_served(project: Path) -> None:
    done = call(project, "serve", str(Path(__file__).parents[2] / "charts" / "mnist"))
    assert done.returncode == 4
    assert "is for training, and serves nothing" in done.stderr
    assert "trainchart run" in done.stderr


def test_without_the_extra_it_says_what_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "_NEEDED", ("json", "no_such_library"))
    done = call(project, "serve", "half-1")
    assert done.returncode == 7
    assert "the model server needs no_such_library, which is not installed" in done.stderr
    assert "pip install 'trainchart[serving]' && pip install --no-deps tensorflow-serving-api" in done.stderr
