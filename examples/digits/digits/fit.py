"""The training: a small convolutional network, Keras `fit`, and one callback that reports, saves and stops."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from digits.data import read_digits, split_digits
from digits.progress import write_progress
from digits.settings import Hyperparameters, Settings
from digits.summary import write_scalars

FILE_ERRORS = (
    FileNotFoundError,
    PermissionError,
    tf.errors.FailedPreconditionError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
)
"""A file or folder that is missing, full or closed to us."""


class TrainingError(Exception):
    """Training cannot go on, and starting it again will not help by itself; the message is one line."""


def build_model(hyperparameters: Hyperparameters) -> keras.Model:
    """Return the untrained network: uint8 images [n, 28, 28] in, ten probabilities out."""
    keras.utils.set_random_seed(hyperparameters.seed)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28), dtype="uint8"),
            layers.Rescaling(1 / 255),
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.4),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ],
        name="digits",
    )
    model.compile(
        optimizer=keras.optimizers.Adam(hyperparameters.learning_rate),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    # fit would do so later, but a checkpoint can only be restored into variables that exist.
    model.optimizer.build(model.trainable_variables)
    return model


def train(settings: Settings) -> int:
    """Train from the latest checkpoint to the last epoch, evaluate, export; return the exit code."""
    try:
        return _train(settings)
    except FILE_ERRORS as error:
        # TensorFlow puts the name of its operation around the one part that a person can use.
        raise TrainingError(re.sub(r"\{\{.*?\}\} | \[Op:.*", "", str(error)).strip()) from error


def _train(settings: Settings) -> int:
    parameters = settings.hyperparameters
    training, held_out = split_digits(read_digits())
    model = build_model(parameters)
    epoch = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, epoch=epoch)
    checkpoints = tf.train.CheckpointManager(checkpoint, settings.checkpoints_dir, max_to_keep=3)
    if checkpoints.restore_or_initialize():
        print(f"restored epoch {int(epoch)} from {checkpoints.latest_checkpoint}", flush=True)
    callback = EpochEnd(settings, epoch, checkpoints, examples_per_epoch=len(training))
    model.fit(
        training.images,
        training.labels,
        batch_size=parameters.batch_size,
        initial_epoch=int(epoch),
        epochs=parameters.epochs,
        validation_data=(held_out.images, held_out.labels),
        verbose=0,
        callbacks=[callback],
    )
    if callback.stop_asked:
        print(f"stopped on request after epoch {int(epoch)}", flush=True)
        return 128 + signal.SIGTERM
    loss, accuracy = model.evaluate(held_out.images, held_out.labels, verbose=0)
    target = f"{settings.checkpoints_dir}/saved_model"
    export_model(model, target)
    callback.report({"accuracy": accuracy, "loss": loss})
    print(f"held-out accuracy {accuracy:.4f} after {int(epoch)} epochs; SavedModel: {target}", flush=True)
    return 0


def export_model(model: keras.Model, target: str) -> None:
    """Write the SavedModel to `target`, in a draft first: a reader never finds half of it."""
    draft = f"{target}.draft"
    model.export(draft, verbose=False)
    if tf.io.gfile.exists(target):
        tf.io.gfile.rmtree(target)
    tf.io.gfile.rename(draft, target)


class EpochEnd(keras.callbacks.Callback):
    """After every epoch: a log line, a point for TensorBoard, the progress file, a checkpoint; and a way out."""

    def __init__(
        self, settings: Settings, epoch: tf.Variable, checkpoints: tf.train.CheckpointManager, examples_per_epoch: int
    ) -> None:
        super().__init__()
        self._settings = settings
        self._epoch = epoch
        self._checkpoints = checkpoints
        self._examples = examples_per_epoch
        self._rate = 0.0
        self._summaries = tf.summary.create_file_writer(f"{settings.log_dir}/digits")
        self._started = time.monotonic()
        self.stop_asked = False
        # An epoch takes a second or less: SIGTERM may wait for its end, where everything is saved anyway.
        signal.signal(signal.SIGTERM, self._ask_to_stop)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        self._started = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        values = dict(logs or {})
        if not math.isfinite(values["loss"]):
            rate = self._settings.hyperparameters.learning_rate
            raise TrainingError(
                f"the loss is {values['loss']} after epoch {epoch + 1}: try a learningRate below {rate}"
            )
        self._rate = self._examples / (time.monotonic() - self._started)
        self._epoch.assign(epoch + 1)
        self._checkpoints.save(checkpoint_number=epoch + 1)
        line = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
        epochs = self._settings.hyperparameters.epochs
        print(f"epoch {epoch + 1}/{epochs}  {line}  {self._rate:.0f} examples/s", flush=True)
        write_scalars(self._summaries, epoch + 1, values)
        self.report({"accuracy": values["val_accuracy"], "loss": values["loss"]})
        self.model.stop_training = self.stop_asked

    def report(self, metrics: Mapping[str, float]) -> None:
        """Write the progress file; a step is one batch."""
        batch_size = self._settings.hyperparameters.batch_size
        steps = int(self._epoch) * -(-self._examples // batch_size)
        rounded = {name: round(value, 4) for name, value in metrics.items()}
        write_progress(self._settings.progress_file, steps, self._rate, rounded)

    def _ask_to_stop(self, _number: int, _frame: Any) -> None:
        self.stop_asked = True
