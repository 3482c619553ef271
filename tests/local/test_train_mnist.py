"""The main job with real TensorFlow: charts/mnist trains real digits as local processes, also when something dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ACCURACY = 0.95
"""On held-out digits; the worst of three seeds must reach it."""

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(240)]
Train = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("seed", [1, 2, 3])
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


def test_a_training_survives_the_death_of_a_worker_the_ps_and_the_chief(train_chart: Train) -> None:
    result = train_chart(
        *("mnist", "mnist"),
        *("--set", "hyperparameters.maxSteps=6000", "--set", "hyperparameters.checkpointSteps=100"),
        *("--kill", "worker-1@12s", "--kill", "ps-0@18s", "--kill", "chief-0@26s"),
    )
    assert result["verdict"] == "Succeeded"
    assert result["step"] == 6000
    assert result["metrics"]["evaluator-0"]["accuracy"] >= ACCURACY
    attempts = {pod["pod"]: pod["attempts"] for pod in result["pods"]}
    assert attempts["worker-1"] == 2
    assert attempts["ps-0"] == 2
    # Killed once; and started again after the loss of its ps, unless it was still waiting for that ps.
    assert attempts["chief-0"] >= 2
    assert attempts["worker-0"] == 1
