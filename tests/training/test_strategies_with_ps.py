"""The same program under every strategy that has ps: to the same accuracy, though worker, ps and leader get lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.free_ports import find_free_port
from tests.training.strategy_runs import ACCURACY, LIBRARY, PROGRAMS, STEPS, StrategyRun

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("strategy", "leader", "roles", "signal", "goes_on"),
    [
        ("parameter-server", "chief-0", "{worker: {replicas: 2}, ps: {}}", "KILL", "restored"),
        ("between-graph-async", "worker-0", "{worker: {replicas: 2}, ps: {}}", "KILL", "joined"),
        ("between-graph-sync", "worker-0", "{worker: {replicas: 3}, ps: {replicas: 2}}", "TERM", "joined"),
        ("in-graph", "chief-0", "{worker: {replicas: 2}, ps: {}}", "TERM", "joined"),
    ],
)
def test_strategies_survive_losing_worker_ps_and_leader(
    run: StrategyRun, strategy: str, leader: str, roles: str, signal: str, goes_on: str
) -> None:
    # One of three synchronous workers is a backup, that a step does not wait for.
    backups = 1 if strategy == "between-graph-sync" else 0
    # While the leader draws histograms or comes back, asynchronous workers may get to the end: it dies half-way.
    kill = f"worker-1:50:KILL,ps-0:100:KILL,{leader}:150:{signal}"
    # Once is enough: TensorFlow writes a line for every operation.
    options = ("--set", "hyperparameters.logDevicePlacement=true") if strategy == "in-graph" else ()
    run.train(strategy, roles, *options, kill=kill, backups=backups)
    assert run.result["verdict"] == "Succeeded"
    assert run.result["step"] >= STEPS
    assert run.result["metrics"][leader]["test_accuracy"] >= ACCURACY
    # Of what a killed worker had begun, one of the two counts may hold more.
    assert run.count_updates() == pytest.approx(run.result["step"], rel=0.03)
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
        assert re.search(rf"step \d+/{STEPS} .* examples/s here", run.log("worker-1"))
    assert (run.checkpoints / "saved_model" / "saved_model.pb").is_file()
    assert bool(options) is bool(re.search(r"placed \S+/kernel on /job:ps/", run.log(leader)))
    assert any(b"gradients/" in events.read_bytes() for events in run.checkpoints.glob("logs/*/events.*"))


@pytest.mark.long
def test_a_run_begins_from_another_strategy_and_other_numbers(run: StrategyRun) -> None:
    """Each release begins where the one before has ended: what is restored are the same weights and updates."""
    few = ("--set", "hyperparameters.checkpointSteps=20", "--set", "hyperparameters.logSteps=20")
    chain = (
        ("parameter-server", "{worker: {replicas: 2}, ps: {replicas: 2}}", "chief-0"),
        ("between-graph-sync", "{worker: {replicas: 3}, ps: {replicas: 1}}", "worker-0"),
        ("multi-worker-mirrored", "{worker: {replicas: 2}}", "worker-0"),
        ("in-graph", "{worker: {replicas: 2}, ps: {}}", "chief-0"),
        ("single", "{}", "worker-0"),
    )
    end = 0
    for number, (strategy, roles, leader) in enumerate(chain):
        resume = ("--set", f"run.resume=latest,run.resumeRelease=r{number - 1}") if number else ()
        steps = ("--set", f"hyperparameters.maxSteps={end + 20}")
        run.train(strategy, roles, *few, *steps, *resume, release=f"r{number}")
        assert run.result["verdict"] == "Succeeded", strategy
        restored = [("restored", end, -1)] if number else []
        assert run.resumed(leader) == restored, strategy
        end = run.result["step"]
        assert run.count_updates() == pytest.approx(end, rel=0.05), strategy
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= 0.5


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
    command = [sys.executable, str(PROGRAMS / "digits.py")]
    with subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True) as ps:
        assert ps.stderr
        try:
            assert any("listening at" in line for line in ps.stderr)
            ps.send_signal(signal.SIGINT)
            assert ps.wait(30) == -signal.SIGINT
        finally:
            ps.kill()
