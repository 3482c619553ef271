"""Training steps, run in this process or by the workers of a cluster.

Both runners know how to compute; what happens between the steps (log, save, stop) is chief.py's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import keras
import tensorflow as tf

from mnist.checkpoint import TrainingState
from mnist.data import Digits
from mnist.stop import StopRequest

STEPS_PER_CALL = 5
"""Steps that a worker does before it reports back: one round trip for several steps."""
STOP_WAIT_SECONDS = 5.0
"""How long a stop waits for the workers: they may have been stopped as well and never answer."""


class Runner(Protocol):
    def run(self, steps: int) -> None:
        """Do `steps` steps; may return early after a stop request."""


class LocalRunner:
    """Runs the steps in this process."""

    def __init__(self, state: TrainingState, digits: Digits, batch_size: int) -> None:
        self._step = _build_step(tf.distribute.get_strategy(), state)
        self._batches = iter(_build_batches(digits, batch_size))

    def run(self, steps: int) -> None:
        self._step(self._batches, tf.constant(steps))


class ClusterRunner:
    """Runs the steps on the workers; the steps of a worker that dies are given to another one.

    Raises tf.errors.UnavailableError (or a relative) when a ps is gone, and the variables with it.
    """

    def __init__(
        self,
        strategy: tf.distribute.ParameterServerStrategy,
        state: TrainingState,
        digits: Digits,
        batch_size: int,
        stop: StopRequest,
    ) -> None:
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self._stop = stop
        self._step = _build_step(strategy, state)
        # Every worker builds its own copy; the 3 MB of digits travel inside the dataset's graph.
        self._batches = iter(self._coordinator.create_per_worker_dataset(lambda: _build_batches(digits, batch_size)))

    def run(self, steps: int) -> None:
        for first in range(0, steps, STEPS_PER_CALL):
            count = min(STEPS_PER_CALL, steps - first)
            self._coordinator.schedule(self._step, args=(self._batches, tf.constant(count)))
        # join() would block until the last step is done, for ever when all workers are stopped along with us.
        deadline = None
        while not self._coordinator.done():
            if self._stop.is_asked:
                deadline = deadline or time.monotonic() + STOP_WAIT_SECONDS
                if time.monotonic() > deadline:
                    return
            time.sleep(0.005)


def _build_batches(digits: Digits, batch_size: int) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_tensor_slices((digits.images, digits.labels))
    return dataset.shuffle(len(digits)).repeat().batch(batch_size).map(_shift).prefetch(2)


def _shift(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Move a batch by up to two pixels each way: 4,000 digits are few, and a moved digit is as good as a new one."""
    padded = tf.pad(images, [[0, 0], [2, 2], [2, 2]])
    row, column = tf.unstack(tf.random.uniform([2], maxval=5, dtype=tf.int32))
    return padded[:, row : row + 28, column : column + 28], labels


def _build_step(strategy: tf.distribute.Strategy, state: TrainingState) -> Callable[[Any, tf.Tensor], None]:
    compute_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    variables = state.model.trainable_variables

    def train_on_batch(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = compute_loss(labels, state.model(images, training=True))
        state.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @tf.function
    def train(batches: Any, steps: tf.Tensor) -> None:
        for _ in tf.range(steps):
            state.loss_sum.assign_add(strategy.run(train_on_batch, args=next(batches)))
            state.step.assign_add(1)

    return train
