"""A training of a second, in this process, that the tests of this folder break in one part or another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainchart_training import Hook, Hyperparameters, Shard, Training
from trainchart_training.place import Place


@dataclass(frozen=True)
class Settings(Hyperparameters):
    max_steps: int = 40
    checkpoint_steps: int = 20
    log_steps: int = 20
    batch_size: int = 16
    keep_checkpoints: int = 2
    hidden: int = 8
    learning_rate: float = 0.01


def build_model(settings: Settings) -> Any:
    import keras

    layers = [keras.Input((4,)), keras.layers.Dense(settings.hidden, "relu"), keras.layers.Dense(1)]
    return keras.Sequential(layers)


def read_examples(split: str, shard: Shard, settings: Settings) -> Any:
    import numpy as np
    import tensorflow as tf

    inputs = np.random.default_rng(len(split)).normal(size=(200, 4)).astype("float32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1, keepdims=True)))


def build_optimizer(settings: Settings) -> Any:
    import keras

    return keras.optimizers.Adam(settings.learning_rate)


def measure_square(targets: Any, outputs: Any) -> Any:
    return (targets - outputs) ** 2


TRAINING = Training(build_model, read_examples, build_optimizer, measure_square, hyperparameters=Settings)


class Trainer:
    """Trains in one folder, as a process of the strategy `single` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkpoints"
        self.place = Place(checkpoints_dir=str(self.folder), log_dir="", progress_file=str(folder / "progress.json"))

    def run(self, training: Training = TRAINING, **settings: Any) -> int:
        from trainchart_training.roles import _compute

        return _compute(training, Settings(**settings), self.place)

    def steps(self) -> list[int]:
        from trainchart_training.saving.checkpoints import Checkpoints

        return Checkpoints(str(self.folder)).steps()

    def progress(self) -> dict[str, Any]:
        return dict(json.loads(Path(self.place.progress_file).read_text()))


class Weights(Hook):
    """Keeps the first and the last weights."""

    def begin(self, model: Any, step: int) -> None:
        self.first = model.get_weights()

    def end(self, model: Any, step: int) -> None:
        self.last = model.get_weights()


def square_by_hand(model: Any, features: Any, targets: Any) -> tuple[Any, Any]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((targets - model(features, training=True)) ** 2)
    return loss, tape.gradient(loss, [item.value for item in model.trainable_variables])


def write_records(folder: Path, files: int, records: int) -> str:
    import tensorflow as tf

    for number in range(files):
        with tf.io.TFRecordWriter(str(folder / f"train-{number}.tfrecord")) as writer:
            for value in range(records):
                writer.write(f"{number}.{value}".encode())
    return f"{folder}/train-*.tfrecord"
