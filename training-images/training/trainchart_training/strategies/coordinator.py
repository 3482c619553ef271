"""parameter-server: a chief gives steps to workers, and variables live on the ps.

A worker that dies is no error: its steps are given to another one. A ps that dies takes variables along, and only
a new chief can begin again from a checkpoint.
"""

from __future__ import annotations

import concurrent.futures
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import PeerLost
from trainchart_training.failures import is_end_of_examples
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.stop import StopRequest
from trainchart_training.saving.state import TrainingState, count_updates_at_once, create_state, find_device
from trainchart_training.strategies.batches import WHOLE, build_batches
from trainchart_training.strategies.step import build_steps

log = logging.getLogger(__name__)

_STEPS_PER_CALL = 10
"""Few, so that all workers have something to do up to the end of a run."""


class CoordinatorRunner:
    """Schedules the steps on the workers. Raises tf.errors.UnavailableError (or a relative) when a ps is gone."""

    def __init__(self, training: Training, settings: Hyperparameters, stop: StopRequest) -> None:
        log.info("waiting for every worker and ps")
        self._training = training
        self._settings = settings
        self._stop = stop
        self._strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
        with self._strategy.scope():
            self.state: TrainingState = create_state(training, settings)
            count_updates_at_once(self.state.optimizer)
            # Beside the weights: what calls return would be fetched one by one.
            self._loss_sum = tf.Variable(0.0, trainable=False)
        self.examples_per_step = settings.batch_size
        self._call = self._build_call(build_steps(training, self._strategy, self.state, settings.clip_norm))
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._batches: Any = None
        self._step = 0
        self._first_step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_asked

    def begin(self) -> bool:
        self._step = self._first_step = int(self.state.step.numpy())
        # Every worker reads all examples and mixes them by itself: which worker does a step is not known before.
        self._batches = iter(
            self._coordinator.create_per_worker_dataset(
                lambda: build_batches(self._training, self._settings, WHOLE, seed=None)
            )
        )
        return False

    def run(self, steps: int) -> float:
        at_once = self._settings.steps_per_call or _STEPS_PER_CALL
        for first in range(0, steps, at_once):
            count = min(at_once, steps - first)
            # A tensor would travel with every call; a number is traced once for full calls, and rests are rare.
            number = count if count == at_once else tf.constant(count)
            self._coordinator.schedule(self._call, args=(self._batches, number))
        finished = self._thread.submit(self._coordinator.join)
        loss = math.nan
        if self._stop.wait(finished):
            self._take_result(finished)
            loss = float(self._loss_sum.numpy()) / steps
            self._loss_sum.assign(0.0)
        self._step = int(self.state.step.numpy())
        return loss

    def _take_result(self, finished: concurrent.futures.Future[None]) -> None:
        """Raise what a step raised."""
        try:
            finished.result()
        except tf.errors.OutOfRangeError as error:
            # The batches never end, but those that a worker held for a lost task do. Without any example they end, too.
            if is_end_of_examples(error) and self._step > self._first_step:
                raise PeerLost("the examples of a worker ended, as they do when it or a ps was lost") from error
            raise

    def collect(self) -> None:
        """Nothing to do: the state's variables are those on the ps."""

    def devices(self) -> Sequence[str]:
        return [find_device(variable) for variable in self.state.saved_variables]

    def agree(self, is_wanted: bool) -> bool:
        return is_wanted

    def _build_call(self, do_steps: Callable[[Any, Any], Any]) -> Any:
        def call(batches: Any, steps: Any) -> None:
            self._loss_sum.assign_add(do_steps(batches, steps))

        return tf.function(call)
