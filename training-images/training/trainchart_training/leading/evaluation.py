"""Measures the model on the test examples: every checkpoint as it appears, or a state at hand.

The evaluator is not part of the cluster: it sees the training only through the checkpoint folder, and keeps its results
there, in evaluations.json, by step.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import SettingsError, TrainingError
from trainchart_training.failures import call_program, describe_error, show
from trainchart_training.hyperparameters import AUTO, FALL, Hyperparameters
from trainchart_training.leading.progress import describe_number, write_progress
from trainchart_training.leading.summary import open_summaries, write_scalars
from trainchart_training.place import Place
from trainchart_training.saving.catalogue import has_stalled, marker_name
from trainchart_training.saving.checkpoints import Checkpoints
from trainchart_training.saving.state import create_state, take_averages
from trainchart_training.strategies.batches import build_test_batches

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
DOUBT_SECONDS = 30.0
"""A leader that finds its last marker damaged starts again within this time, and goes back to an earlier checkpoint."""


class Measure:
    """Computes loss and metrics of a model over all test examples; keep it, since building it is slow."""

    def __init__(self, training: Training, settings: Hyperparameters, model: Any) -> None:
        self._batches = build_test_batches(training, settings)
        self._metrics = make_metrics(training)
        self.examples = 0

        def measure(features: Any, targets: Any) -> tuple[Any, Any]:
            outputs = model(features, training=False)
            for metric in self._metrics:
                metric.update_state(targets, outputs)
            count = tf.shape(tf.nest.flatten(outputs)[0])[0]
            loss = tf.reduce_mean(training.loss(targets, outputs))
            return tf.cast(loss, tf.float64) * tf.cast(count, tf.float64), count

        self._measure = tf.function(measure, reduce_retracing=True)

    def __call__(self, batches: int = -1) -> dict[str, float]:
        """Return the loss and every metric by name, to six digits; of no more than `batches`, where given."""
        for metric in self._metrics:
            metric.reset_state()
        total, examples = 0.0, 0
        for features, targets in self._batches.take(batches):
            loss, count = self._measure(features, targets)
            total, examples = total + float(loss), examples + int(count)
        if not examples:
            raise TrainingError("there are no test examples to evaluate with")
        self.examples = examples
        values = {**{metric.name: float(metric.result()) for metric in self._metrics}, "loss": total / examples}
        return {name: float(f"{value:.6g}") for name, value in values.items()}


def shall_fall(training: Training, settings: Hyperparameters) -> bool:
    """Say whether less of what an early stop looks at is better.

    Raises SettingsError where it is not measured, and where neither the settings nor Keras know.
    """
    name, mode = settings.early_stop_metric, settings.early_stop_mode
    metrics = {metric.name: metric for metric in make_metrics(training)}
    if name != "loss" and name not in metrics:
        raise SettingsError(
            f"hyperparameter earlyStopMetric: {name} is not one of the measured metrics: "
            f"{', '.join(['loss', *metrics])}"
        )
    if mode != AUTO:
        return mode == FALL
    # Keras says it nowhere in public; its own callbacks look there, too (MonitorCallback).
    direction = "down" if name == "loss" else getattr(metrics[name], "_direction", None)
    if direction not in ("up", "down"):
        raise SettingsError(
            f"hyperparameter earlyStopMetric: {name} may improve by falling or by rising:"
            " set earlyStopMode to min or max"
        )
    return bool(direction == "down")


class EvaluationBook:
    """The results by step, in a file beside the checkpoints: read by the leader, and kept over restarts.

    For a number that is not finite JSON has no word: "NaN", "Infinity" or "-Infinity" stands there.
    """

    def __init__(self, folder: str, writer: str) -> None:
        """`writer` is the task type of this process: the leader and the evaluator may write at once."""
        self._path = f"{folder}/evaluations.json"
        self._draft = f"{self._path}.{writer}.draft"

    def read(self) -> dict[int, dict[str, float]]:
        if not tf.io.gfile.exists(self._path):
            return {}
        try:
            with tf.io.gfile.GFile(self._path) as file:
                results = json.load(file).items()
                return {int(step): {name: float(value) for name, value in each.items()} for step, each in results}
        except (ValueError, TypeError, AttributeError) as error:
            # Like a damaged checkpoint: no reason to give up, and what is lost can be measured again.
            log.warning("%s is damaged and is rewritten: %s", self._path, error)
            return {}

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        self._write({**self.read(), step: metrics})

    def forget_after(self, step: int) -> None:
        results = self.read()
        kept = {measured: metrics for measured, metrics in results.items() if measured <= step}
        if kept != results:
            self._write(kept)

    def _write(self, results: Mapping[int, Mapping[str, float]]) -> None:
        body = {step: {name: _express(value) for name, value in metrics.items()} for step, metrics in results.items()}
        with tf.io.gfile.GFile(self._draft, "w") as file:
            file.write(json.dumps(body, indent=1))
        tf.io.gfile.rename(self._draft, self._path, overwrite=True)


def _express(value: float) -> float | str:
    """Return `value` for JSON, as protocol buffers do; float() reads either."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def evaluate(training: Training, settings: Hyperparameters, place: Place) -> int:
    """Play the evaluator: measure every checkpoint until the last one of the training is done; return 0."""
    evaluator = Evaluator(training, settings, place)
    log.info("waiting for checkpoints in %s", place.checkpoints_dir)
    while not evaluator.look():
        time.sleep(POLL_SECONDS)
    log.info("final %s at step %d", describe_metrics(evaluator.last_metrics), evaluator.last_step)
    return 0


class Evaluator:
    """Knows which checkpoints are done, also after a restart."""

    def __init__(self, training: Training, settings: Hyperparameters, place: Place) -> None:
        self._settings = settings
        self._falls = settings.early_stop_evaluations > 0 and shall_fall(training, settings)
        self._place = place
        self._state = create_state(training, settings)
        self._measure = Measure(training, settings, self._state.model)
        self._checkpoints = Checkpoints(place.checkpoints_dir)
        self._book = EvaluationBook(place.checkpoints_dir, place.task_type)
        self._summaries = open_summaries(place.log_dir, "evaluator")
        self._damaged: dict[int, dict[str, object]] = {}
        """What was passed over, as it was then."""
        self._doubtful: dict[int, float] = {}
        """Whose marker could not be read, which was told, and since when."""
        self.last_step = -1
        self._last_identity: dict[str, object] = {}
        """Of that step's checkpoint, as it was measured."""
        self._rate = 0.0
        """Examples per second, as last measured."""
        self.last_metrics: dict[str, float] = {}

    def look(self) -> bool:
        """Measure what is new, in order; return whether the training's last checkpoint is done."""
        if self._is_recreated(self.last_step, self._last_identity):
            # By a leader that had to go back: what it has not kept of the book is measured again, and this one anyhow,
            # which may have been measured while the leader took it out.
            self._book.forget_after(self.last_step - 1)
            self.last_step = -1
        for step in reversed(self._checkpoints.steps()):
            if step > self.last_step:
                self._evaluate(step)
        return self.last_step >= 0 and self._is_last(self.last_step)

    def _evaluate(self, step: int) -> None:
        started = time.monotonic()
        identity = self._checkpoints.identify(step)
        # Read again each time: the leader takes out what is of a former training.
        metrics = self._book.read().get(step)
        if metrics is None:
            if not self._restore(step, identity):
                return
            take_averages(self._state)
            metrics = self._measure()
            if self._is_recreated(step, identity):
                # Replaced meanwhile: this result is of what no longer exists.
                return
            self._book.add(step, metrics)
            self._rate = self._measure.examples / (time.monotonic() - started)
            log.info("step %d  %s", step, describe_metrics(metrics))
            write_scalars(self._summaries, step, metrics)
        self.last_step, self.last_metrics, self._last_identity = step, metrics, identity
        write_progress(self._place.progress_file, step, self._rate, self.last_metrics)

    def _is_recreated(self, step: int, identity: dict[str, object]) -> bool:
        """Say whether a checkpoint is there and another one than before; its marker is rewritten at the end, too."""
        marker, there = marker_name(step), self._checkpoints.identify(step)
        return any(there[name] != identity.get(name) for name in there if not name.startswith(marker))

    def _restore(self, step: int, identity: dict[str, object]) -> bool:
        """Restore a checkpoint and return True, or pass over one that is damaged or gone, as the leader does.

        `identity` is from before it is read: what is written again meanwhile is tried again.
        """
        if self._damaged.get(step) == identity and not self._is_last(step):
            return False
        problem = self._checkpoints.restore(self._state, step)
        if not problem:
            return True
        if step not in self._checkpoints.steps():
            log.warning("the checkpoint of step %d was deleted before it was evaluated: %s", step, problem)
            return False
        if self._is_last(step):
            raise TrainingError(
                f"the last checkpoint, step {step} in {self._place.checkpoints_dir}, cannot be read: {problem};"
                " repair the storage"
            )
        log.warning("the checkpoint of step %d is damaged and was not evaluated: %s", step, problem)
        self._damaged[step] = identity
        return False

    def _is_last(self, step: int) -> bool:
        try:
            # Read again: the end may have been noted after the checkpoint was complete.
            marker = self._checkpoints.read_marker(step)
        except (ValueError, tf.errors.OpError) as error:
            if step not in self._doubtful:
                self._doubtful[step] = time.monotonic()
                log.warning("cannot read the marker of step %d: %s", step, describe_error(error))
            return time.monotonic() - self._doubtful[step] >= DOUBT_SECONDS and self._must_be_last(step)
        self._doubtful.pop(step, None)
        return marker.is_last(self._settings.max_steps, self._settings.early_stop_evaluations > 0)

    def _must_be_last(self, step: int) -> bool:
        """Say whether the training ends with `step` whatever its marker says: no step is left, or it got no better."""
        if self._checkpoints.steps()[:1] != [step]:
            return False
        patience, metric = self._settings.early_stop_evaluations, self._settings.early_stop_metric
        return step >= self._settings.max_steps or has_stalled(self._book.read(), metric, patience, self._falls)


def make_metrics(training: Training) -> list[Any]:
    """Return the program's metrics; raise TrainingError where two results would have one name, the loss included."""
    metrics: list[Any] = call_program("metrics", lambda: list(training.metrics()))
    for metric in metrics:
        if not isinstance(metric, keras.metrics.Metric):
            raise TrainingError(
                f"the program's function metrics returned {show(metric)}, which is not a keras.metrics.Metric"
            )
    names = ["loss", *(metric.name for metric in metrics)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TrainingError(f"several results are called {', '.join(repeated)}: give the program's metrics other names")
    return metrics


def describe_metrics(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {describe_number(value)}" for name, value in metrics.items())
