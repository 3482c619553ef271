"""A training of a few seconds over pods of two nodes, which notes what it saves and dies once in the middle of that.

Its chart is made from models/mnist.yaml, with a strategy, its roles and the program below in it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainchart_training.saving.catalogue import find_steps

from .access import Access
from .releases import Release, make_mnist_chart, make_values, merge_values
from .runs import CONTROLLED

SAVED = list(range(0, 141, 10))
"""Steps with a checkpoint."""
DIES_AT = 40
"""The leading task is killed when this checkpoint is written and its marker not yet renamed."""
WAITS_AT = 60
"""From here on it trains only once the test lets it, so that what is done to the storage hits a training."""
ROLES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "parameter-server": {"chief": {}, "worker": {"replicas": 1}, "ps": {}},
    "multi-worker-mirrored": {"worker": {"replicas": 2}},
}
LEADERS = {"parameter-server": "chief", "multi-worker-mirrored": "worker"}
PROGRAM = f"""
import hashlib, json, os, signal, time
from dataclasses import dataclass
import keras, numpy as np, tensorflow as tf
from trainchart_training import Hook, Hyperparameters, Training, train
from trainchart_training.saving.checkpoints import Checkpoints
folder = os.environ["TRAINCHART_CHECKPOINTS_DIR"]
save, rename = Checkpoints.save, tf.io.gfile.rename
@dataclass(frozen=True)
class Settings(Hyperparameters):
    keep_checkpoints: int = 100
    learning_rate: float = 0.01
def note(name, content):
    with open(folder + "/" + name + ".new", "w") as file:
        file.write(content)
    os.replace(file.name, folder + "/" + name)
def note_and_save(self, state):
    values = [np.asarray(one.numpy()) for one in state.saved_variables]
    digests = sorted(hashlib.sha256(value.tobytes()).hexdigest() for value in values)
    note("values-" + str(int(state.step.numpy())) + ".json", json.dumps(digests))
    return save(self, state)
def rename_or_die(source, target, overwrite=False):
    if target == folder + "/ckpt-{DIES_AT}.json" and not os.path.exists(folder + "/died"):
        note("died", "")
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, overwrite)
Checkpoints.save, tf.io.gfile.rename = note_and_save, rename_or_die
class Brake(Hook):
    def saved(self, step, path):
        time.sleep(0.4)
        while step == {WAITS_AT} and not os.path.exists(folder + "/go"):
            time.sleep(0.1)
def build_model(settings):
    return keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
def read_examples(split, shard, settings):
    inputs = np.random.default_rng(1).normal(size=(2000, 16)).astype("float32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1, keepdims=True)))
train(
    Training(
        model=build_model,
        examples=read_examples,
        optimizer=lambda settings: keras.optimizers.Adam(settings.learning_rate),
        loss=keras.losses.MeanSquaredError(),
        hyperparameters=Settings,
        hooks=[Brake()],
    )
)
"""


def plan_training(access: Access, namespace: str, strategy: str, storage: str, folder: Path) -> Release:
    """Plan a release with checkpoints on a StorageClass; its chart is made in `folder`."""
    roles = ROLES[strategy]
    chart = make_mnist_chart(folder, strategy, roles)
    name = f"{storage}-{strategy.partition('-')[0]}"
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": name}},
    }
    changes = {
        "command": ["python3", "-c", PROGRAM],
        "volumes": {"checkpoints": {"storageClass": storage}},
        "topologySpreadConstraints": [apart],
    }
    values = make_values("mnist", tuple(roles), maxSteps=SAVED[-1], checkpointSteps=SAVED[1])
    return Release(access, namespace, name, chart, merge_values(merge_values(values, CONTROLLED), changes))


def find_leader(release: Release, strategy: str) -> str:
    """Return the name of the pod that saves."""
    return f"{release.name}-mnist-{LEADERS[strategy]}-0"


def ask(release: Release, command: str) -> dict[str, Any]:
    """Return what the CLI says about a release, as JSON."""
    argv = [sys.executable, "-m", "trainchart", command, release.name, "-n", release.namespace, "--format", "json"]
    found: dict[str, Any] = json.loads(release.access.run(argv).stdout)
    return found


def check_checkpoints(folder: Path) -> None:
    """Check that no checkpoint is missing, each is whole, and each restores what was in memory when it was saved."""
    argv = [sys.executable, "-m", "trainchart", "checkpoints", "verify", str(folder), "--format=json"]
    verified = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert sorted(find_steps(path.name for path in folder.iterdir())) == SAVED
    for step in SAVED:
        saved = json.loads((folder / f"values-{step}.json").read_text())
        restored = _read_digests(f"{folder}/ckpt-{step}")
        assert len(saved) > 4
        assert {each: restored.count(each) for each in saved} == {each: saved.count(each) for each in saved}, step


def _read_digests(prefix: str) -> list[str]:
    import tensorflow as tf

    reader = tf.train.load_checkpoint(prefix)
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith("/.ATTRIBUTES/VARIABLE_VALUE")]
    return [hashlib.sha256(reader.get_tensor(name).tobytes()).hexdigest() for name in names]
