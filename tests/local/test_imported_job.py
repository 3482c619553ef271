"""A TFJob that is imported with its code trains here, with the cluster that its program reads from TF_CONFIG."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(600)]
PROGRAM = """\
import argparse, json, os, tensorflow as tf
parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float)
parser.add_argument("--steps", type=int)
flags = parser.parse_args()
place = json.loads(os.environ["TF_CONFIG"])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    slope = tf.Variable(0.0)

@tf.function
def step():
    def one():
        gradient = 2.0 * (slope - 3.0)
        slope.assign_sub(flags.learning_rate * tf.distribute.get_replica_context().all_reduce("mean", gradient))
    strategy.run(one)

for _ in range(flags.steps):
    step()
index = place["task"]["index"]
folder = os.path.join(os.environ["TRAINCHART_CHECKPOINTS_DIR"], str(index))
tf.train.Checkpoint(slope=slope).write(folder + "/ckpt")
print("worker", index, "of", len(place["cluster"]["worker"]), "learnt", round(float(slope.numpy()), 3))
"""
JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: slope}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: tensorflow
              image: registry.example.com/team/slope:1.0
              command: [sh, -c, "cd /workspace && exec python learn.py --learning_rate 0.25 --steps 40"]
              volumeMounts: [{name: models, mountPath: /models}]
          volumes: [{name: models, persistentVolumeClaim: {claimName: slope-models}}]
"""


def test_an_imported_job_learns_with_the_cluster_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "learn.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)

    def trainchart(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trainchart", *arguments]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    imported = trainchart("import", "job.yaml", "--code", "code")
    assert "the strategy is multi-worker-mirrored" in imported.stderr
    done = trainchart("run", "slope", "--quiet", "--format", "json", "--set", "hyperparameters.steps=30")
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["verdict"] == "Succeeded"
    logs = tmp_path / ".trainchart" / "runs" / "slope-1" / "logs"
    for index in range(2):
        assert f"worker {index} of 2 learnt 3.0" in (logs / f"worker-{index}.log").read_text()
    assert list((tmp_path / ".trainchart" / "runs" / "slope-1" / "claims").glob("*/0/ckpt.index"))
