"""parameter-server: a chief gives steps to workers, and variables live on the ps.

A worker that dies is no error: its steps are given to another one. A ps that dies takes variables along, and only
a new chief can begin again from a checkpoint.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.batches import WHOLE, build_batches
from trainchart_training.definition import Training
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.state import TrainingState, create_state, find_device
from trainchart_training.step import build_steps
from trainchart_training.stop import StopRequest

log = logging.getLogger(__name__)

STOP_WAIT_SECONDS = 5.0
"""How long a stop waits for the workers: they may have been stopped as well and never answer."""
_POLL_SECONDS = 0.005
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
        self.examples_per_step = settings.batch_size
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        self._call = build_steps(training, self._strategy, self.state, settings.clip_norm)
        self._batches: Any = None
        self._step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_asked

    def begin(self) -> bool:
        self._step = int(self.state.step.numpy())
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
            self._coordinator.schedule(self._call, args=(self._batches, tf.constant(count)))
        self._wait()
        before, self._step = self._step, int(self.state.step.numpy())
        done = self._step - before
        loss = float(self.state.loss_sum.numpy())
        self.state.loss_sum.assign(0.0)
        return loss / done if done else math.nan

    def collect(self) -> None:
        """Nothing to do: the state's variables are those on the ps."""

    def devices(self) -> Sequence[str]:
        return [find_device(variable) for variable in self.state.saved_variables]

    def agree(self, is_wanted: bool) -> bool:
        return is_wanted

    def _wait(self) -> None:
        """Wait for the scheduled steps; join() would block for ever when all workers are stopped along with us."""
        deadline = None
        while not self._coordinator.done():
            if self._stop.is_asked:
                deadline = deadline or time.monotonic() + STOP_WAIT_SECONDS
                if time.monotonic() > deadline:
                    return
            time.sleep(_POLL_SECONDS)
        # Raises what a step raised.
        self._coordinator.join()
