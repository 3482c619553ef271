"""One program in one process, on several devices and on several workers: to the same accuracy, kills or not."""

from __future__ import annotations

import re

import pytest

from tests.training.strategy_runs import ACCURACY, STEPS, StrategyRun

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]


def test_single_goes_on_with_more_steps(run: StrategyRun) -> None:
    run.train("single", "{}", "--set", "hyperparameters.maxSteps=150", kill="worker-0:100:KILL")
    # It died before it could save step 100.
    assert run.resumed("worker-0") == [("restored", 50, 50)]
    assert (run.result["step"], run.attempts) == (150, {"worker-0": 2})
    run.train("single", "{}", "--resume", "--reset-values")
    assert run.resumed("worker-0")[-1] == ("restored", 150, 150)
    assert run.result["step"] == STEPS
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY


def test_mirrored_on_two_devices(run: StrategyRun) -> None:
    run.train("mirrored", "{}", devices=2)
    assert "mirrored on /device:CPU:0, /device:CPU:1" in run.log("worker-0")
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY


def test_multi_worker_mirrored_survives_worker_deaths_and_a_stop(run: StrategyRun) -> None:
    kill = "worker-1:100:KILL,worker-1:150:TERM,worker-0:250:KILL"
    run.train("multi-worker-mirrored", "{worker: {replicas: 2}}", kill=kill)
    assert run.result["step"] == STEPS
    assert run.result["metrics"]["worker-0"]["test_accuracy"] >= ACCURACY
    resumed = run.resumed("worker-0")
    assert all(how == "restored" and step == newest for how, step, newest in resumed)
    # Worker 1 was asked to stop, both saved, and both went on from there.
    (stopped,) = {int(step) for step in re.findall(r"stopped on request at step (\d+)", run.log("worker-0"))}
    assert f"stopped on request at step {stopped}" in run.log("worker-1")
    assert stopped >= 150
    assert ("restored", stopped, stopped) in resumed
    assert min(run.attempts.values()) >= 4
