"""The main job with real TensorFlow: charts/mnist trains real digits as local processes, also when something dies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from trainchart.local.io.process_table import find_program

ACCURACY = 0.95
"""On held-out digits; the worst of three seeds must reach it, the third of them although processes are killed."""
KILLS = (("worker-1", 150), ("ps-0", 350), ("chief-0", 550))
"""Whose program gets SIGKILL once the chief has reached which step."""
DEADLINE_SECONDS = 180.0

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
Train = Callable[..., dict[str, Any]]


def read_step(run: Path) -> int:
    """Return the highest step that the chief has logged."""
    log = run / "logs" / "chief-0.log"
    return max(map(int, re.findall(r"step (\d+)/", log.read_text())), default=0) if log.exists() else 0


def kill_program(supervisor: int, mark: str) -> None:
    for launcher in psutil.Process(supervisor).children():
        with contextlib.suppress(psutil.Error):
            if launcher.environ().get("TRAINCHART_LOCAL_POD") == mark and (program := find_program(launcher.pid)):
                os.kill(program, signal.SIGKILL)
                return
    pytest.fail(f"{mark} does not run")


@pytest.mark.parametrize("seed", [1, 2])
def test_digits_are_learned_whatever_the_seed(train_chart: Train, tmp_path: Path, seed: int) -> None:
    result = train_chart("mnist", "mnist", "--set", f"hyperparameters.seed={seed}")
    assert result["verdict"] == "Succeeded"
    assert result["step"] == 1000
    assert result["metrics"]["evaluator-0"]["accuracy"] >= ACCURACY
    claim = tmp_path / ".trainchart" / "runs" / "mnist-1" / "claims" / "mnist-1-mnist-checkpoints"
    assert (claim / "saved_model" / "saved_model.pb").is_file()
    assert list((claim / "logs" / "evaluator").glob("events.*"))
    assert {pod["pod"]: pod["attempts"] for pod in result["pods"]} == dict.fromkeys(
        ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0"), 1
    )


def test_training_survives_deaths_of_worker_ps_and_chief(train_chart: Train, tmp_path: Path) -> None:
    run = tmp_path / ".trainchart" / "runs" / "mnist-1"

    def kill_each(supervisor: subprocess.Popen[str]) -> None:
        for pod, step in KILLS:
            deadline = time.monotonic() + DEADLINE_SECONDS
            while read_step(run) < step:
                if supervisor.poll() is not None:
                    return  # With an error, that is then shown.
                assert time.monotonic() < deadline, f"no step {step} to kill {pod} at"
                time.sleep(0.05)
            kill_program(supervisor.pid, f"{run}/{pod}")

    result = train_chart(
        *("mnist", "mnist", "--set", "hyperparameters.seed=3,hyperparameters.checkpointSteps=100,run.maxRestarts=3"),
        meanwhile=kill_each,
    )
    assert result["verdict"] == "Succeeded"
    assert result["step"] == 1000
    assert result["metrics"]["evaluator-0"]["accuracy"] >= ACCURACY
    attempts = {pod["pod"]: pod["attempts"] for pod in result["pods"]}
    assert attempts["worker-1"] == 2
    assert attempts["ps-0"] == 2
    # Killed once, and started again after the loss of its ps: more than once where that ps was not back yet.
    assert attempts["chief-0"] >= 3
    assert attempts["worker-0"] == 1
