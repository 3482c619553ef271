"""Strategies whose processes each hold all weights: single, mirrored, multi-worker-mirrored.

Every process runs the same loop. In multi-worker-mirrored they must stay in step, also when they stop and end.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Shard, Training
from trainchart_training.errors import PeerLost
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.stop import StopRequest
from trainchart_training.place import MIRRORED, MULTI_WORKER_MIRRORED, Place
from trainchart_training.saving.state import TrainingState, create_state, find_device
from trainchart_training.strategies.batches import build_batches
from trainchart_training.strategies.runner import keep_to_the_end
from trainchart_training.strategies.step import build_steps

_CALL_SECONDS = 0.5


class Pace:
    """Finds out how many steps take half a second, unless the number is given."""

    def __init__(self, steps_per_call: int) -> None:
        self._is_given = steps_per_call > 0
        self.steps = steps_per_call or 1

    def learn(self, steps: int, seconds: float) -> None:
        """Take into account that the last call did `steps` steps in so many seconds."""
        if self._is_given:
            return
        # By no more than twice: a first call also builds what the others only run, and no call says much by itself.
        self.steps = max(1, min(2 * self.steps, int(steps * _CALL_SECONDS / max(seconds, 1e-6))))


log = logging.getLogger(__name__)


def _open_strategy(place: Place) -> Any:
    """Return TensorFlow's strategy; under multi-worker-mirrored this waits for every worker."""
    if place.strategy == MULTI_WORKER_MIRRORED:
        log.info("waiting for every worker")
        return tf.distribute.MultiWorkerMirroredStrategy()
    if place.strategy == MIRRORED:
        # Logical devices, because one physical device can be split into several.
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        log.info("mirrored on %s", ", ".join(device.name for device in devices))
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.get_strategy()


class ReplicaRunner:
    """Runs the steps in this process, and in step with the other workers where there are any."""

    def __init__(self, training: Training, settings: Hyperparameters, place: Place, stop: StopRequest) -> None:
        self._training = training
        self._settings = settings
        self._place = place
        self._stop = stop
        self._pace = Pace(settings.steps_per_call)
        self._is_stopping = False
        self._strategy = _open_strategy(place)
        with self._strategy.scope():
            self.state: TrainingState = create_state(training, settings)
        self.examples_per_step = settings.batch_size * self._strategy.num_replicas_in_sync
        self._step = 0
        self._batches: Any = None
        self._call = build_steps(training, self._strategy, self.state, settings.clip_norm)
        self._count = self._build_count()

    @property
    def step(self) -> int:
        return self._step

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    def begin(self) -> bool:
        self._step = int(self.state.step.numpy())
        if self._is_many and self._total(self._step)[0] != self._step * self._place.workers:
            raise PeerLost(f"the workers start from different checkpoints, {self} from step {self._step}")
        # The seed holds the step, so that a training that goes on does not begin the same examples again.
        seed = self._settings.seed + self._step
        self._batches = iter(
            self._strategy.distribute_datasets_from_function(
                lambda context: build_batches(
                    self._training,
                    self._settings,
                    Shard(context.input_pipeline_id, context.num_input_pipelines),
                    seed + context.input_pipeline_id,
                    self._strategy.num_replicas_in_sync // context.num_input_pipelines,
                )
            )
        )
        # TensorFlow gives each device an iterator with a tuner of its own: see read_examples.
        keep_to_the_end(self._batches)
        return False

    def run(self, steps: int) -> float:
        done, loss = 0, 0.0
        while done < steps:
            self._is_stopping, wanted = self._look()
            if self._is_stopping:
                break
            count = min(wanted, steps - done)
            started = time.monotonic()
            # Read at once: only then a device has done all that it was given.
            loss += float(self._call(self._batches, tf.constant(count)).numpy())
            self._pace.learn(count, time.monotonic() - started)
            done += count
        self._step += done
        return loss / done if done else math.nan

    def collect(self) -> None:
        """Nothing to do: the state is here."""

    def devices(self) -> Sequence[str]:
        return [find_device(variable) for variable in self.state.saved_variables]

    def agree(self, is_wanted: bool) -> bool:
        return self._total(int(is_wanted))[0] > 0 if self._is_many else is_wanted

    @property
    def _is_many(self) -> bool:
        return self._place.strategy == MULTI_WORKER_MIRRORED

    def _look(self) -> tuple[bool, int]:
        """Return whether to stop, and the steps until the next look; the same in every worker."""
        if not self._is_many:
            return self._stop.is_asked, self._pace.steps
        asked, steps = self._total(int(self._stop.is_asked), self._pace.steps)
        return asked > 0, steps // self._place.workers

    def _total(self, *numbers: int) -> list[int]:
        """Return the sums of all workers' numbers; every worker waits here for the others."""
        return [int(total) for total in self._count(tf.constant(numbers, tf.int64)).numpy()]

    def _build_count(self) -> Any:
        strategy = self._strategy
        local_replicas = strategy.num_replicas_in_sync // self._place.workers

        def count(numbers: Any) -> Any:
            shares = strategy.run(tf.identity, args=(numbers,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, shares, axis=None) // local_replicas

        return tf.function(count)
