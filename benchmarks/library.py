"""The training library's steps beside a loop written by hand: the same model, examples, optimizer and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.measure import Row, time_by_turns
from trainchart_training import Hyperparameters, Shard, Training
from trainchart_training.place import MIRRORED, SINGLE, Place

STEPS = 200
_DEVICES = 2
_SETTINGS = Hyperparameters(batch_size=64, shuffle_buffer=1000)


def build_model(settings: Hyperparameters) -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def read_examples(split: str, shard: Shard, settings: Hyperparameters) -> Any:
    import numpy as np
    import tensorflow as tf

    generator = np.random.default_rng(1)
    images = generator.random((2000, 28, 28, 1), "float32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((images, generator.integers(0, 10, len(images))))


def build_optimizer(settings: Hyperparameters) -> Any:
    import keras

    return keras.optimizers.SGD(0.01)


def measure_library() -> list[Row]:
    """Measure `single`, and `mirrored` on two devices that one processor pretends to be."""
    import tensorflow as tf

    logical = [tf.config.LogicalDeviceConfiguration()] * _DEVICES
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
    return [*_compare(SINGLE, 1), *_compare(MIRRORED, _DEVICES)]


def _compare(strategy: str, replicas: int) -> list[Row]:
    contenders = {"by hand": _start_by_hand(strategy), "library": _start_library(strategy)}
    seconds = time_by_turns(contenders)
    examples = STEPS * _SETTINGS.batch_size * replicas
    return [
        Row(f"{strategy}: a loop written by hand", examples / seconds["by hand"], "examples/s"),
        Row(f"{strategy}: the library", examples / seconds["library"], "examples/s"),
        Row("ratio", seconds["by hand"] / seconds["library"], "of the loop", 0.97, lowest=True),
    ]


def _start_library(strategy: str) -> Callable[[], object]:
    """Return what does STEPS steps as the library's own loop does them between two reports."""
    import keras

    from trainchart_training.replicas import ReplicaRunner
    from trainchart_training.stop import StopRequest

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    training = Training(build_model, read_examples, build_optimizer, loss)
    runner = ReplicaRunner(training, _SETTINGS, Place(strategy), StopRequest(30))
    runner.begin()
    return lambda: runner.run(STEPS)


def _start_by_hand(strategy: str) -> Callable[[], object]:
    """Return what does STEPS steps as TensorFlow's guide to custom training loops writes them, in one call."""
    import keras
    import tensorflow as tf

    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    scope = tf.distribute.MirroredStrategy(devices) if strategy == MIRRORED else tf.distribute.get_strategy()
    with scope.scope():
        model, optimizer = build_model(_SETTINGS), build_optimizer(_SETTINGS)
        optimizer.build(model.trainable_variables)
    compute = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    batch = _SETTINGS.batch_size * scope.num_replicas_in_sync
    examples = read_examples("train", Shard(0, 1), _SETTINGS).shuffle(_SETTINGS.shuffle_buffer).repeat()
    batches = iter(scope.experimental_distribute_dataset(examples.batch(batch, drop_remainder=True).prefetch(2)))

    def train_on_batch(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = compute(labels, model(images, training=True)) / batch
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    @tf.function
    def train(iterator: Any) -> Any:
        total = 0.0
        for _ in tf.range(STEPS):
            total += scope.reduce("SUM", scope.run(train_on_batch, args=next(iterator)), axis=None)
        return total

    return lambda: float(train(batches))
