"""One program under every strategy, as local processes from a chart, each to the same accuracy; and some get killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from free_ports import find_free_port

HERE = Path(__file__).parent
LIBRARY = HERE.parent.parent / "training-images" / "training"
ACCURACY = 0.88
"""On the 1,000 held-out digits, after 400 steps of 64 and whatever the kills threw away."""
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: digits
description: Handwritten digits under any strategy.
image: {{repository: registry.example.com/ml/digits, tag: "1"}}
code: {{path: {programs}, command: [python, digits.py]}}
strategy: {strategy}
roles: {roles}
env: {{PYTHONPATH: {library}, TF_CPP_MIN_LOG_LEVEL: "2", KILL: "{kill}", CPU_DEVICES: "{devices}"}}
volumes: {{checkpoints: {{size: 1Gi, mountPath: /checkpoints}}}}
hyperparameters:
  maxSteps: {{type: integer, default: 400}}
  checkpointSteps: {{type: integer, default: 50}}
  logSteps: {{type: integer, default: 50}}
  histogramSteps: {{type: integer, default: 100}}
  logDevicePlacement: {{type: boolean, default: false}}
  backupWorkers: {{type: integer, default: {backups}}}
"""

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]


class Run:
    """A training through `trainchart run`, and what it left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.result: dict[str, Any] = {}

    def train(
        self, strategy: str, roles: str, *options: str, kill: str = "", devices: int = 0, backups: int = 0
    ) -> None:
        models = self._folder / "models"
        models.mkdir(exist_ok=True)
        spec = SPEC.format(
            strategy=strategy,
            roles=roles,
            kill=kill,
            devices=devices,
            backups=backups,
            library=LIBRARY,
            programs=HERE / "programs",
        )
        (models / "digits.yaml").write_text(spec)
        command = [sys.executable, "-m", "trainchart", "run", "digits", "--release", "r", "--quiet", "--format", "json"]
        done = subprocess.run([*command, *options], cwd=self._folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        self.result = json.loads(done.stdout)

    @property
    def attempts(self) -> dict[str, int]:
        return {pod["pod"]: pod["attempts"] for pod in self.result["pods"]}

    @property
    def checkpoints(self) -> Path:
        return self._folder / ".trainchart/runs/r/claims/r-digits-checkpoints"

    def log(self, pod: str) -> str:
        return (self._folder / f".trainchart/runs/r/logs/{pod}.log").read_text()

    def resumed(self, leader: str) -> list[tuple[str, int, int]]:
        """Return how the leader went on each time: the word, the step, and the newest checkpoint then."""
        found, newest = [], -1
        for line in self.log(leader).splitlines():
            if saved := re.search(r"saved \S+/ckpt-(\d+)", line):
                newest = int(saved[1])
            elif began := re.search(r"(restored|joined the training at) step (\d+)", line):
                found.append((began[1].split()[0], int(began[2]), newest))
        return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_single_goes_on_with_more_steps(run: Run) -> None:
    run.train("single", "{}", "--set", "hyperparameters.maxSteps=200", kill="worker-0:100:KILL")
    # It died before it could save step 100.
    assert run.resumed("worker-0") == [("restored", 50, 50)]
    assert (run.result["step"], run.attempts) == (200, {"worker-0": 2})
    run.train("single", "{}", "--set", "hyperparameters.maxSteps=400", "--resume")
    assert run.resumed("worker-0")[-1] == ("restored", 200, 200)
    assert run.result["step"] == 400
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY


def test_ctrl_c_ends_a_ps_at_once(tmp_path: Path) -> None:
    """It waits in TensorFlow's server, from where no handler of Python's is ever called."""
    cluster = {"worker": ["127.0.0.1:1"], "ps": [f"127.0.0.1:{find_free_port()}"]}
    environment = {
        "TRAINCHART_STRATEGY": "between-graph-async",
        "TRAINCHART_CHECKPOINTS_DIR": str(tmp_path),
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "ps", "index": 0}}),
        "TASK_TYPE": "ps",
        "TASK_INDEX": "0",
        "PYTHONPATH": str(LIBRARY),
    }
    command = [sys.executable, str(HERE / "programs" / "digits.py")]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True) as ps:
        assert ps.stderr
        try:
            assert any("listening at" in line for line in ps.stderr)
            ps.send_signal(signal.SIGINT)
            assert ps.wait(30) == -signal.SIGINT
        finally:
            ps.kill()


def test_mirrored_on_two_devices(run: Run) -> None:
    run.train("mirrored", "{}", devices=2)
    assert "mirrored on /device:CPU:0, /device:CPU:1" in run.log("worker-0")
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY


def test_multi_worker_mirrored_survives_the_death_of_each_worker_and_loses_nothing_to_a_stop(run: Run) -> None:
    kill = "worker-1:100:KILL,worker-1:200:TERM,worker-0:300:KILL"
    run.train("multi-worker-mirrored", "{worker: {replicas: 2}}", kill=kill)
    assert run.result["step"] == 400
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY
    resumed = run.resumed("worker-0")
    assert all(how == "restored" and step == newest for how, step, newest in resumed)
    # Worker 1 was asked to stop, both saved, and both went on from there.
    (stopped,) = {int(step) for step in re.findall(r"stopped on request at step (\d+)", run.log("worker-0"))}
    assert f"stopped on request at step {stopped}" in run.log("worker-1")
    assert stopped >= 200
    assert ("restored", stopped, stopped) in resumed
    assert min(run.attempts.values()) >= 4


@pytest.mark.parametrize(
    ("strategy", "leader", "roles", "signal", "goes_on"),
    [
        ("parameter-server", "chief-0", "{worker: {replicas: 2}, ps: {}, evaluator: {}}", "KILL", "restored"),
        ("between-graph-async", "worker-0", "{worker: {replicas: 2}, ps: {}}", "KILL", "joined"),
        ("between-graph-sync", "worker-0", "{worker: {replicas: 3}, ps: {replicas: 2}}", "TERM", "joined"),
        ("in-graph", "chief-0", "{worker: {replicas: 2}, ps: {}}", "TERM", "joined"),
    ],
)
def test_strategies_with_ps_survive_the_loss_of_a_worker_the_ps_and_the_leader(
    run: Run, strategy: str, leader: str, roles: str, signal: str, goes_on: str
) -> None:
    # One of three synchronous workers is a backup, that a step does not wait for.
    backups = 1 if strategy == "between-graph-sync" else 0
    # While the leader draws histograms or comes back, asynchronous workers may get to the end: it dies half-way.
    kill = f"worker-1:50:KILL,ps-0:150:KILL,{leader}:200:{signal}"
    # Once is enough: TensorFlow writes a line for every operation.
    options = ("--set", "hyperparameters.logDevicePlacement=true") if strategy == "in-graph" else ()
    run.train(strategy, roles, *options, kill=kill, backups=backups)
    assert run.result["verdict"] == "Succeeded"
    assert run.result["step"] >= 400
    measured = run.result["metrics"].get("evaluator-0") or run.result["metrics"][leader]
    assert measured.get("accuracy", measured.get("test_accuracy")) >= ACCURACY
    assert run.attempts["worker-1"] >= 2
    assert run.attempts["ps-0"] == 2
    assert run.attempts[leader] >= 3
    assert ("stopped on request" in run.log(leader)) is (signal == "TERM")
    resumed = run.resumed(leader)
    # After the ps had died from a checkpoint, the newest; after its own end the leader finds what the ps have kept.
    assert "restored" in [how for how, _, _ in resumed]
    assert all(step == newest if how == "restored" else step >= newest for how, step, newest in resumed)
    assert resumed[-1][0] == goes_on
    if strategy.startswith("between-graph"):
        assert "joined the training" in run.log("worker-1")
        assert re.search(r"step \d+/400 .* examples/s here", run.log("worker-1"))
    assert (run.checkpoints / "saved_model" / "saved_model.pb").is_file()
    assert bool(options) is bool(re.search(r"placed \S+/kernel on /job:ps/", run.log(leader)))
    assert any(b"gradients/" in events.read_bytes() for events in run.checkpoints.glob("logs/*/events.*"))
