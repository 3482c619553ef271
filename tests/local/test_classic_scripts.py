"""Programs of TensorFlow 1 that know nothing of trainchart train from their charts, told their place by flags."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ACCURACY = 0.85
"""On the 1,000 held-out digits after 300 steps of 100, or 200 of 200; one layer without training gets 0.1."""

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
Train = Callable[..., dict[str, Any]]


def read_log(folder: Path, release: str, pod: str) -> str:
    return (folder / ".trainchart" / "runs" / release / "logs" / f"{pod}.log").read_text()


def test_one_task_runs_what_is_placed_on_the_other(train_chart: Train, tmp_path: Path) -> None:
    result = train_chart("hello", "classic")
    assert result["verdict"] == "Succeeded"
    said = "/job:worker/task:0 says: Hello, distributed TensorFlow! 1 + … + 100 = 5050"
    assert said in read_log(tmp_path, "hello-1", "chief-0")


@pytest.mark.parametrize(("is_sync", "workers"), [("false", 1), ("true", 2)])
def test_a_script_with_flags_for_its_place_learns_digits(
    train_chart: Train, tmp_path: Path, is_sync: str, workers: int
) -> None:
    changes = f"hyperparameters.syncReplicas={is_sync},hyperparameters.trainSteps=300,roles.worker.replicas={workers}"
    assert train_chart("mnist-classic", "classic", "--set", changes)["verdict"] == "Succeeded"
    (accuracy,) = re.findall(
        r"accuracy on 1000 held-out digits: (\d\.\d+)", read_log(tmp_path, "mnist-classic-1", "worker-0")
    )
    assert float(accuracy) >= ACCURACY
    (claim,) = (tmp_path / ".trainchart" / "runs" / "mnist-classic-1" / "claims").iterdir()
    (saved,) = claim.glob("model.ckpt-3*.index")
    # Asynchronous workers, each at its own pace, may add a step after the last one.
    assert int(re.findall(r"ckpt-(\d+)", saved.name)[0]) - 300 in range(workers)
    for index in range(workers):
        assert f"worker {index} begins at step" in read_log(tmp_path, "mnist-classic-1", f"worker-{index}")


def test_one_graph_has_towers_on_all_workers_and_learns_digits(train_chart: Train, tmp_path: Path) -> None:
    changes = "hyperparameters.trainSteps=200"
    assert train_chart("mnist-towers", "classic", "--set", changes)["verdict"] == "Succeeded"
    log = read_log(tmp_path, "mnist-towers-1", "chief-0")
    assert "towers on ['/job:worker/task:0', '/job:worker/task:1']" in log
    (accuracy,) = re.findall(r"accuracy on 1000 held-out digits: (\d\.\d+)", log)
    assert float(accuracy) >= ACCURACY
    (claim,) = (tmp_path / ".trainchart" / "runs" / "mnist-towers-1" / "claims").iterdir()
    assert (claim / "model.ckpt-200.index").is_file()
