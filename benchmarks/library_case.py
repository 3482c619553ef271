"""What the section on the training library trains: a small network on made-up pictures, endlessly.

`python -m benchmarks.library_case` trains it by the library, in the role that its environment gives it, and prints a
Mark for every report of the leader.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from trainchart_training import Hook, Hyperparameters, Shard, Training, train
from trainchart_training.place import MIRRORED

GO_ON = "\n"
"""The leader reads it after each mark."""
REPLICAS = 2
"""Workers, and devices under mirrored."""
IMAGE_SHAPE = (28, 28, 1)
CLASSES = 10
LEARNING_RATE = 0.01
EXAMPLES = 2000
SETTINGS = Hyperparameters(batch_size=64, shuffle_buffer=1000)


def build_model(settings: Hyperparameters) -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(IMAGE_SHAPE),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


def read_examples(split: str, shard: Shard, settings: Hyperparameters) -> Any:
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(1)
    images = generator.random((EXAMPLES, *IMAGE_SHAPE), "float32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((images, generator.integers(0, CLASSES, EXAMPLES)[: len(images)]))


def build_optimizer(settings: Hyperparameters) -> Any:
    import keras

    return keras.optimizers.SGD(LEARNING_RATE)


def split_processor(strategy: str) -> None:
    """Let one processor pretend to be several devices, where there is something to mirror."""
    import tensorflow as tf

    if strategy == MIRRORED:
        logical = [tf.config.LogicalDeviceConfiguration()] * REPLICAS
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)


def print_mark(step: int) -> None:
    """Tell when a step was done, in seconds of a clock that all processes share; wait until told to go on."""
    print(time.monotonic(), step, flush=True)
    sys.stdin.readline()


class _Marks(Hook):
    def logged(self, step: int, values: Mapping[str, float]) -> None:
        print_mark(step)


def main() -> None:
    import keras

    split_processor(os.environ["TRAINCHART_STRATEGY"])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    train(Training(build_model, read_examples, build_optimizer, loss, hooks=(_Marks(),)))


if __name__ == "__main__":
    main()
