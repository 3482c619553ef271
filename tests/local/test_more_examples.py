"""Every further example of the training library learns what it claims to, from its chart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
Train = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("name", "leader", "steps", "metric", "at_least", "at_most"),
    [
        # A guess is right for one digit of ten.
        ("mnist-multi-gpu", "worker-0", 200, "test_accuracy", 0.88, 1.0),
        # The mean of all cars is off by 6.5 miles.
        ("wide-and-deep", "worker-0", 300, "test_miles_off", 0.0, 3.5),
        # "As last year" has 0.62.
        ("lstm", "worker-0", 200, "test_r2", 0.72, 1.0),
        # 0.5 is chance.
        ("word2vec", "chief-0", 1000, "test_auc", 0.62, 1.0),
    ],
)
def test_an_example_learns(
    train_chart: Train, tmp_path: Path, name: str, leader: str, steps: int, metric: str, at_least: float, at_most: float
) -> None:
    result = train_chart(name, name, "--set", f"hyperparameters.maxSteps={steps}")
    assert (result["verdict"], result["step"]) == ("Succeeded", steps)
    assert at_least <= result["metrics"][leader][metric] <= at_most
    (claim,) = (tmp_path / ".trainchart" / "runs" / f"{name}-1" / "claims").glob("*-checkpoints")
    assert (claim / "saved_model" / "saved_model.pb").is_file()
