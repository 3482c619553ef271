"""The program that docs/training.md shows does train, and its tables tell what the library does."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainchart_runtime import causes
from trainchart_runtime.classify import Ending, classify
from trainchart_training import Hook, Hyperparameters, Training
from trainchart_training.hyperparameters import camel_case

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "training.md").read_text()


@pytest.mark.tensorflow
def test_the_program_of_the_guide_trains(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n# sine/train.py\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "train.py").write_text(program)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "training-images" / "training"),
        "TRAINCHART_CHECKPOINTS_DIR": str(tmp_path / "checkpoints"),
        "TRAINCHART_HYPERPARAMETERS": '{"learningRate": 0.01, "maxSteps": 300}',
    }
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (error,) = re.findall(r"evaluated step 300  error (\S+)", done.stderr)
    # The mean of the targets alone would be off by 0.6.
    assert float(error) < 0.4
    wrong = {**environment, "TRAINCHART_HYPERPARAMETERS": '{"learningRate": "fast"}', "PYTHONUNBUFFERED": ""}
    (tmp_path / "train.py").write_text("print('printed before')\n" + program)
    refused = subprocess.run(
        command, cwd=tmp_path, env=wrong, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert refused.returncode == 2
    said = refused.stdout.splitlines()
    assert said[-2:] == [
        "printed before",
        "error: worker 0: hyperparameter learningRate: expected a number, got 'fast'",
    ]
    # So a launcher does not start it again.
    assert classify(Ending(2, lines=said)).cause is causes.BAD_ARGUMENTS


def test_every_hyperparameter_and_its_default_is_in_the_table() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", GUIDE, re.MULTILINE))
    known = {
        camel_case(item.name): str(item.default).lower().removesuffix(".0")
        for item in dataclasses.fields(Hyperparameters)
    }
    assert told == known


def test_every_part_of_a_program_is_told() -> None:
    for item in dataclasses.fields(Training):
        assert f"`{item.name}`" in GUIDE
    for name in vars(Hook):
        assert name.startswith("_") or f"`{name}`" in GUIDE
