"""A training through `trainchart run` under any strategy: of one program, some of whose processes get killed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
LIBRARY = HERE.parent.parent / "training-images" / "training"
STEPS = 300
ACCURACY = 0.88
"""On the 1,000 held-out digits, after so many steps of 64 and whatever the kills threw away."""
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: digits
description: Handwritten digits under any strategy.
image: {{repository: registry.example.com/ml/digits, tag: "1"}}
code: {{path: code, command: [python, digits.py]}}
strategy: {strategy}
roles: {roles}
env: {{PYTHONPATH: {library}, TF_CPP_MIN_LOG_LEVEL: "2", KILL: "{kill}", CPU_DEVICES: "{devices}"}}
volumes: {{checkpoints: {{size: 1Gi, mountPath: /checkpoints}}}}
hyperparameters:
  maxSteps: {{type: integer, default: {steps}}}
  checkpointSteps: {{type: integer, default: 50}}
  logSteps: {{type: integer, default: 50}}
  histogramSteps: {{type: integer, default: 100}}
  logDevicePlacement: {{type: boolean, default: false}}
  backupWorkers: {{type: integer, default: {backups}}}
"""


class StrategyRun:
    """One training, and what it has left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._release = "r"
        self.result: dict[str, Any] = {}

    def train(
        self,
        strategy: str,
        roles: str,
        *options: str,
        kill: str = "",
        devices: int = 0,
        backups: int = 0,
        release: str = "r",
    ) -> None:
        self._release = release
        models = self._folder / "models"
        models.mkdir(exist_ok=True)
        shutil.copytree(PROGRAMS, models.parent / "code", dirs_exist_ok=True)
        spec = SPEC.format(
            strategy=strategy,
            roles=roles,
            kill=kill,
            devices=devices,
            backups=backups,
            library=LIBRARY,
            steps=STEPS,
        )
        (models / "digits.yaml").write_text(spec)
        command = [
            sys.executable,
            "-m",
            "trainchart",
            "run",
            "digits",
            "--release",
            release,
            "--quiet",
            "--format",
            "json",
        ]
        # Programs that are killed start again, as in a cluster.
        restarts = ["--set", "run.maxRestarts=3"]
        done = subprocess.run([*command, *restarts, *options], cwd=self._folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        self.result = json.loads(done.stdout)

    @property
    def attempts(self) -> dict[str, int]:
        return {pod["pod"]: pod["attempts"] for pod in self.result["pods"]}

    @property
    def checkpoints(self) -> Path:
        return self._folder / f".trainchart/runs/{self._release}/claims/{self._release}-digits-checkpoints"

    def count_updates(self) -> int:
        """Return how many updates the optimizer has counted, which its schedules go by."""
        import tensorflow as tf

        reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(self.checkpoints)))
        return int(reader.get_tensor("optimizer/inner_optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE"))

    def log(self, pod: str) -> str:
        return (self._folder / f".trainchart/runs/{self._release}/logs/{pod}.log").read_text()

    def resumed(self, leader: str) -> list[tuple[str, int, int]]:
        """Return how the leader went on each time: the word, the step, and the newest checkpoint then."""
        found, newest = [], -1
        for line in self.log(leader).splitlines():
            if saved := re.search(r"saved \S+/ckpt-(\d+)", line):
                newest = int(saved[1])
            elif began := re.search(r"(restored|joined the training at) step (\d+)", line):
                found.append((began[1].split()[0], int(began[2]), newest))
        return found
