"""The loop around the steps: restore, report, save, evaluate where no other task does, stop, finish.

The leader's, and under multi-worker-mirrored that of every worker, of whom only worker 0 writes to the folder.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import Any

from trainchart_training.definition import Training
from trainchart_training.errors import EXIT_PEER_LOST, NOT_FINITE_HINT, TrainingError
from trainchart_training.failures import call_program
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.evaluation import EvaluationBook, Measure, describe_metrics, shall_fall
from trainchart_training.leading.export import export_model
from trainchart_training.leading.model_views import Histograms, trace_gradients
from trainchart_training.leading.progress import describe_number, write_progress
from trainchart_training.leading.stop import StopRequest
from trainchart_training.leading.summary import open_summaries, write_graph, write_scalars
from trainchart_training.place import Place
from trainchart_training.saving.catalogue import EARLY, LAST, STALLED, has_stalled
from trainchart_training.saving.checkpoints import Checkpoints
from trainchart_training.saving.run_folder import RunFolder
from trainchart_training.saving.state import TrainingState, copy_result, create_state, find_infinite_weight
from trainchart_training.strategies.runner import Runner

log = logging.getLogger(__name__)


class Leader:
    """Trains from the latest checkpoint on."""

    def __init__(
        self,
        training: Training,
        settings: Hyperparameters,
        place: Place,
        runner: Runner,
        stop: StopRequest,
        folder: RunFolder,
        oldest: int,
    ) -> None:
        """`folder` has begun the run; `oldest` is the step below which no checkpoint may be restored."""
        self._training = training
        self._settings = settings
        self._place = place
        self._runner = runner
        self._stop = stop
        self._folder = folder
        self._checkpoints = Checkpoints(place.checkpoints_dir, settings.keep_checkpoints, oldest)
        self._book = EvaluationBook(place.checkpoints_dir, place.task_type)
        self._falls = settings.early_stop_evaluations > 0 and shall_fall(training, settings)
        self._copy: TrainingState | None = None
        self._measure: Measure | None = None
        self._histograms: Histograms | None = None
        self._drawn_step = 0
        """The step of the last histograms, or the first of this process."""
        self._metrics: dict[str, float] = {}
        self._rate = 0.0
        """Examples per second, as last reported."""
        self._summaries: Any = None
        self._saved_step = -1

    def run(self) -> int:
        """Return 0 at the end, 128 + signal after a stop, or 75 when a worker that this one waits for is stopped."""
        runner, last_step, every = self._runner, self._settings.max_steps, self._settings.checkpoint_steps
        is_early = self._begin()
        # At both ends all agree once more, so that no task leaves before worker 0 is done: it would lose a peer.
        while runner.step < last_step and not runner.is_stopping and not is_early:
            self._run_some()
            self._write_histograms()
            if runner.step // every > self._saved_step // every and runner.step < last_step:
                self._save()
                is_early = runner.agree(self._place.is_leader and self._is_stalled())
        if runner.is_stopping and runner.step < last_step and not is_early:
            self._save()
            log.info("stopped on request at step %d", runner.step)
            runner.agree(False)
            # Where another worker was asked, this one has to begin again.
            return self._stop.exit_code or EXIT_PEER_LOST
        if self._place.is_leader:
            self._finish(is_early)
        runner.agree(False)
        return 0

    def _begin(self) -> bool:
        """Start where the latest checkpoint is; return whether a process before was to end early there, and did not."""
        restored = self._checkpoints.restore_latest(self._runner.state)
        has_joined = self._runner.begin()
        step = self._runner.step
        if has_joined:
            log.info("joined the training at step %d: its variables are still there", step)
        elif restored is not None:
            log.info("restored step %d from %s", step, self._checkpoints.path(restored))
        if self._settings.log_device_placement and self._place.is_leader:
            self._log_devices()
        self._drawn_step = step
        self._saved_step = -1 if restored is None else restored
        if self._place.is_leader:
            # Before anything is written: fewer may stay than before, so that there is room again.
            self._checkpoints.remove_expired(self._saved_step)
            # Of a training that was in this folder before, or that went on from a checkpoint damaged since.
            self._book.forget_after(self._saved_step)
            self._folder.keep()
        self._summaries = open_summaries(self._place.log_dir if self._place.is_leader else "", self._place.task_type)
        # A folder that cannot be written to is found now, and not after the first hundreds of steps.
        if restored is None:
            self._save()
            self._write_graph()
        elif self._place.is_leader:
            self._checkpoints.check_writable()
        if self._place.is_leader:
            self._call_hooks("begin", self._runner.state.model, step)
        is_stalled = restored is not None and self._checkpoints.read_marker(restored).ending == STALLED
        is_early = self._runner.agree(is_stalled and self._settings.early_stop_evaluations > 0)
        if is_early:
            log.info("finishing the early stop that an earlier process began (earlyStopEvaluations)")
        return is_early

    def _log_devices(self) -> None:
        names = [*(item.name for item in self._runner.state.shapes), "step"]
        for name, device in zip(names, self._runner.devices(), strict=True):
            log.info("placed %s on %s", name, device)

    def _write_graph(self) -> None:
        """Show TensorBoard what a step computes; once, since it is the same after a restart."""
        if self._place.is_leader and self._place.log_dir:
            write_graph(self._summaries, trace_gradients(self._training, self._settings, self._place.shards[0]))

    def _run_some(self) -> None:
        """Run to the next multiple of log_steps or checkpoint_steps, then report."""
        step = self._runner.step
        pauses = (self._settings.log_steps, self._settings.checkpoint_steps, self._settings.histogram_steps)
        target = min(self._settings.max_steps, *((step // every + 1) * every for every in pauses if every))
        started = time.monotonic()
        loss = self._runner.run(target - step)
        steps = self._runner.step - step
        seconds = time.monotonic() - started
        if steps == 0 or (self._runner.is_stopping and math.isnan(loss)):
            # A stop does not wait for the step under way to tell its loss.
            return
        if not math.isfinite(loss):
            raise TrainingError(f"the loss is {loss} at step {self._runner.step}: {NOT_FINITE_HINT}")
        self._report(loss, steps * self._runner.examples_per_step / seconds)

    def _report(self, loss: float, examples_per_second: float) -> None:
        step, self._rate = self._runner.step, examples_per_second
        last, loss_words = self._settings.max_steps, describe_number(loss)
        log.info("step %d/%d  loss %s  %.0f examples/s", step, last, loss_words, examples_per_second)
        metrics = {**self._metrics, "loss": loss}
        write_progress(self._place.progress_file, step, examples_per_second, metrics)
        values = {"loss": loss, "examples_per_second": examples_per_second}
        if not self._place.is_leader:
            return
        write_scalars(self._summaries, step, values)
        self._call_hooks("logged", step, values)

    def _write_histograms(self) -> None:
        every, step = self._settings.histogram_steps, self._runner.step
        # Asynchronous workers rarely end on a multiple: the one that passes one draws.
        if not every or step // every == self._drawn_step // every or not self._place.is_leader:
            return
        self._drawn_step = step
        self._histograms = self._histograms or Histograms(self._training, self._settings)
        self._runner.collect()
        self._histograms.write(self._summaries, step, self._runner.state)

    def _save(self) -> None:
        if not self._place.is_leader:
            self._saved_step = self._runner.step
            return
        self._runner.collect()
        step = int(self._runner.state.step.numpy())
        if step == self._saved_step:
            return
        _check_weights(self._runner.state, step)
        path = self._checkpoints.save(self._runner.state)
        self._saved_step = step
        log.info("saved %s", path)
        self._call_hooks("saved", step, path)

    def _call_hooks(self, event: str, *arguments: Any) -> None:
        for hook in self._training.hooks:
            call_program(f"{type(hook).__name__}.{event}", getattr(hook, event), *arguments)

    def _is_stalled(self) -> bool:
        """Say whether the evaluations so far ask for an early end."""
        patience, metric = self._settings.early_stop_evaluations, self._settings.early_stop_metric
        if not patience:
            return False
        if not self._place.evaluators:
            self._evaluate()
        is_stalled = has_stalled(self._book.read(), metric, patience, self._falls)
        if is_stalled:
            log.info("%s did not improve in %d evaluations: stopping early", metric, patience)
        return is_stalled

    def _finish(self, is_early: bool) -> None:
        """Save and export, and note the end last: a reader who finds that need not ask whether the rest was done."""
        # First, so that no step is lost where the export fails, and what is exported is the last checkpoint.
        self._save()
        step, folder = self._saved_step, self._place.checkpoints_dir
        if is_early:
            self._checkpoints.mark_ending(step, STALLED)
        origin = replace(self._place.origin, strategy=self._place.strategy)
        exported = export_model(self._training, self._settings, self._copy_model(), folder, origin, step)
        log.info("SavedModel: %s", exported)
        if not self._place.evaluators:
            self._evaluate()
        self._call_hooks("end", self._copy_model(), step)
        self._checkpoints.mark_ending(step, EARLY if is_early else LAST)

    def _evaluate(self) -> None:
        """Measure the state as it is, unless the book has it already."""
        state = self._runner.state
        step = int(state.step.numpy())
        if step in self._book.read():
            return
        model = self._copy_model()
        self._measure = self._measure or Measure(self._training, self._settings, model)
        measured = self._measure()
        self._book.add(step, measured)
        log.info("evaluated step %d  %s", step, describe_metrics(measured))
        # Named apart from the loss of the training.
        self._metrics = {f"test_{name}": value for name, value in measured.items()}
        write_scalars(self._summaries, step, self._metrics)
        write_progress(self._place.progress_file, step, self._rate, self._metrics)

    def _copy_model(self) -> Any:
        """Return the model as it is now, in variables of this process: what is measured and exported."""
        if self._copy is None:
            self._copy = create_state(self._training, self._settings)
        copy_result(self._runner.state, self._copy)
        return self._copy.model


def _check_weights(state: TrainingState, step: int) -> None:
    """Raise TrainingError for weights that are not numbers: saved, they would be restored again and again."""
    if weight := find_infinite_weight(state):
        raise TrainingError(f"{weight} is not finite at step {step}: {NOT_FINITE_HINT}")
