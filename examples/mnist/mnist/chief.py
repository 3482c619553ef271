"""The chief: connects the cluster, drives the training, saves, and exports the result.

Alone, without a cluster, the same loop computes the steps itself.
"""

from __future__ import annotations

import logging
import math
import time

import tensorflow as tf

from mnist.checkpoint import TrainingState, create_state, open_checkpoints, read_step
from mnist.data import read_digits, split_digits
from mnist.errors import TrainingError, describe_error, is_peer_lost
from mnist.export import export_model
from mnist.progress import write_progress
from mnist.runner import ClusterRunner, LocalRunner, Runner
from mnist.settings import Settings
from mnist.stop import StopRequest
from mnist.summary import write_scalars

log = logging.getLogger(__name__)


def train(settings: Settings) -> int:
    """Train to the last step or until asked to stop; return the exit code."""
    tf.io.gfile.makedirs(settings.checkpoints_dir)
    latest = tf.train.latest_checkpoint(settings.checkpoints_dir)
    if latest and read_step(latest) >= settings.hyperparameters.max_steps:
        # Started again after the end, because its pod was moved, say: the workers may be gone for good.
        log.info("nothing left to do: %s is the end of the training", latest)
        return 0
    stop = StopRequest(settings.stop_grace_seconds)
    state, runner = _build(settings, stop)
    stop.listen()
    return Training(settings, state, runner, stop).run()


def _build(settings: Settings, stop: StopRequest) -> tuple[TrainingState, Runner]:
    parameters = settings.hyperparameters
    digits, _ = split_digits(read_digits())
    if not settings.task.is_distributed:
        state = create_state(parameters)
        return state, LocalRunner(state, digits, parameters.batch_size)
    log.info("waiting for every worker and ps")
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    with strategy.scope():
        state = create_state(parameters)
    return state, ClusterRunner(strategy, state, digits, parameters.batch_size, stop)


class Training:
    """The loop around the steps: log, save, stop, finish."""

    def __init__(self, settings: Settings, state: TrainingState, runner: Runner, stop: StopRequest) -> None:
        self._settings = settings
        self._parameters = settings.hyperparameters
        self._state = state
        self._runner = runner
        self._stop = stop
        self._checkpoints = open_checkpoints(state, settings.checkpoints_dir)
        self._summaries = tf.summary.create_file_writer(f"{settings.log_dir}/chief")
        self._step = 0
        self._saved_step = -1

    def run(self) -> int:
        """Train from the latest checkpoint on; return 0 at the end, or 128 + signal after a stop."""
        last_step, every = self._parameters.max_steps, self._parameters.checkpoint_steps
        self._restore()
        while self._step < last_step and not self._stop.is_asked:
            self._run_some()
            if self._step // every > self._saved_step // every and self._step < last_step:
                self._save()
        if self._step >= last_step:
            # Before the last checkpoint, so that whoever finds that one need not ask whether this was done as well.
            log.info("SavedModel: %s", export_model(self._state.model, self._settings.checkpoints_dir))
        self._save()
        if self._stop.is_asked:
            log.info("stopped on request at step %d", self._step)
        return self._stop.exit_code

    def _restore(self) -> None:
        latest = self._checkpoints.latest_checkpoint
        if latest:
            self._checkpoints.checkpoint.restore(latest).assert_existing_objects_matched()
            self._step = self._saved_step = int(self._state.step.numpy())
            log.info("restored step %d from %s", self._step, latest)
        else:
            # At once, so that a folder nobody can write to is found now and not after the first 200 steps.
            self._save()

    def _run_some(self) -> None:
        """Run to the next multiple of log_steps or checkpoint_steps, then report."""
        pauses = (self._parameters.log_steps, self._parameters.checkpoint_steps)
        target = min(self._parameters.max_steps, *((self._step // every + 1) * every for every in pauses))
        self._state.optimizer.learning_rate.assign(self._learning_rate())
        started = time.monotonic()
        self._runner.run(target - self._step)
        steps = int(self._state.step.numpy()) - self._step
        seconds = time.monotonic() - started
        if steps == 0:
            return
        loss = float(self._state.loss_sum.numpy()) / steps
        self._state.loss_sum.assign(0.0)
        self._step += steps
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} at step {self._step}: try a learningRate below {self._parameters.learning_rate}"
            )
        self._report(loss, steps * self._parameters.batch_size / seconds)

    def _learning_rate(self) -> float:
        """Return the rate of this step, falling from learningRate to 0 along a half cosine.

        Workers compute from weights that others have changed since: small last steps let that noise settle.
        """
        done = self._step / self._parameters.max_steps
        return self._parameters.learning_rate * 0.5 * (1 + math.cos(math.pi * done))

    def _report(self, loss: float, examples_per_second: float) -> None:
        log.info(
            "step %d/%d  loss %.4f  %.0f examples/s",
            self._step,
            self._parameters.max_steps,
            loss,
            examples_per_second,
        )
        write_progress(self._settings.progress_file, self._step, examples_per_second, {"loss": round(loss, 4)})
        curves = {"loss": loss, "examples_per_second": examples_per_second}
        write_scalars(self._summaries, self._step, curves)

    def _save(self) -> None:
        if self._step == self._saved_step:
            return
        try:
            path = self._checkpoints.save(checkpoint_number=self._step)
        except tf.errors.OpError as error:
            if is_peer_lost(error):
                raise
            kept = f"step {self._saved_step}" if self._saved_step >= 0 else "none"
            raise TrainingError(
                f"cannot save step {self._step} in {self._settings.checkpoints_dir}: {describe_error(error)}"
                f" (last complete checkpoint: {kept})"
            ) from error
        self._saved_step = self._step
        log.info("saved %s", path)
