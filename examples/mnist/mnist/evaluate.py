"""The evaluator: measures every checkpoint on the held-out digits as it appears, and ends with the last one.

It is not part of the cluster: it sees the training only through the checkpoint folder.
"""

from __future__ import annotations

import json
import logging
import time

import keras
import numpy as np
import tensorflow as tf

from mnist.checkpoint import read_step
from mnist.data import read_digits, split_digits
from mnist.model import build_model
from mnist.progress import write_progress
from mnist.settings import Settings
from mnist.summary import write_scalars

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5


def evaluate(settings: Settings) -> int:
    """Evaluate until the checkpoint of the last step is done; return 0."""
    evaluator = Evaluator(settings)
    log.info("waiting for checkpoints in %s", settings.checkpoints_dir)
    while evaluator.last_step < settings.hyperparameters.max_steps:
        time.sleep(POLL_SECONDS)
        checkpoints = tf.train.get_checkpoint_state(settings.checkpoints_dir)
        for path in checkpoints.all_model_checkpoint_paths if checkpoints else ():
            evaluator.evaluate(path)
    log.info("final accuracy %.4f at step %d", evaluator.last_metrics["accuracy"], evaluator.last_step)
    return 0


class Evaluator:
    """Knows which checkpoints are done, also after a restart: evaluations.json lies beside them."""

    def __init__(self, settings: Settings) -> None:
        self._progress_file = settings.progress_file
        self._book = f"{settings.checkpoints_dir}/evaluations.json"
        self._done: dict[str, dict[str, float]] = {}
        if tf.io.gfile.exists(self._book):
            with tf.io.gfile.GFile(self._book) as file:
                self._done = json.load(file)
        _, self._held_out = split_digits(read_digits())
        self._model = build_model(seed=0)
        self._summaries = tf.summary.create_file_writer(f"{settings.log_dir}/evaluator")
        self.last_step = -1
        self.last_metrics: dict[str, float] = {}

    def evaluate(self, path: str) -> None:
        """Measure the checkpoint at `path` and report it, unless that is done already."""
        try:
            step = read_step(path)
            if step <= self.last_step:
                return
            started = time.monotonic()
            if str(step) not in self._done:
                self._measure(path, step)
        except tf.errors.NotFoundError:
            log.warning("%s is gone: newer checkpoints replaced it before its turn", path)
            return
        self.last_step, self.last_metrics = step, self._done[str(step)]
        rate = len(self._held_out) / (time.monotonic() - started)
        write_progress(self._progress_file, step, rate, self.last_metrics)

    def _measure(self, path: str, step: int) -> None:
        checkpoint = tf.train.Checkpoint(model=self._model)
        checkpoint.restore(path).expect_partial().assert_existing_objects_matched()
        logits = self._model.predict(self._held_out.images, batch_size=250, verbose=0)
        labels = self._held_out.labels
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        metrics = {"accuracy": float(np.mean(logits.argmax(axis=1) == labels)), "loss": float(np.mean(losses))}
        self._done[str(step)] = {name: round(value, 4) for name, value in metrics.items()}
        log.info("step %d  accuracy %.4f  loss %.4f", step, metrics["accuracy"], metrics["loss"])
        write_scalars(self._summaries, step, metrics)
        draft = f"{self._book}.draft"
        with tf.io.gfile.GFile(draft, "w") as file:
            file.write(json.dumps(self._done, indent=1))
        tf.io.gfile.rename(draft, self._book, overwrite=True)
