"""The checkpoint folder: saves, restores and tidies up. What a complete checkpoint is, catalogue.py decides.

Its files are written by the task that holds the variables: the ps of a parameter-server training, else this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainchart_training.errors import TrainingError
from trainchart_training.failures import describe_error, is_peer_lost
from trainchart_training.saving import catalogue
from trainchart_training.saving.catalogue import Marker
from trainchart_training.saving.state import TrainingState

log = logging.getLogger(__name__)

_FILE_ERRORS = (tf.errors.OpError, OSError)
_PROBE = ".writable"
_PARTS_SUFFIX = "_temp"
"""Ends the name of the folder in which TensorFlow collects the parts of a checkpoint; it then removes the folder."""
_SLOW_SECONDS = 3.0
_SLOW_BYTES_PER_SECOND = 5e6
"""Slower than this is the storage, whatever the size of the model."""


class Checkpoints:
    """The checkpoints of one training, by step."""

    def __init__(self, folder: str, keep: int = 1, oldest: int = 0) -> None:
        """`oldest` is the step below which none may be restored."""
        self._folder = folder
        self._keep = keep
        self._oldest = oldest

    def steps(self) -> list[int]:
        """Return the steps that have a complete checkpoint, the newest first."""
        return catalogue.find_steps(self._list())

    def path(self, step: int) -> str:
        """Return TensorFlow's prefix of the checkpoint's files."""
        return f"{self._folder}/{catalogue.prefix(step)}"

    def read_marker(self, step: int) -> Marker:
        """Return the marker; raises ValueError where it is damaged and tf.errors.NotFoundError where it is gone."""
        with tf.io.gfile.GFile(f"{self._folder}/{catalogue.marker_name(step)}") as file:
            return catalogue.parse_marker(file.read())

    def find_last(self, max_steps: int, may_stop_early: bool) -> Marker | None:
        """Return the marker of the checkpoint with which such a training has ended, if it has."""
        for step in self.steps()[:1]:
            try:
                marker = self.read_marker(step)
            except ValueError:
                return None
            return marker if marker.is_last(max_steps, may_stop_early) else None
        return None

    def restore_latest(self, state: TrainingState) -> int | None:
        """Restore the newest checkpoint that can be read and return its step, or None where there is none.

        Raises TrainingError where they are another model's, or where not one of several can be read.
        """
        steps = [step for step in self.steps() if step >= self._oldest]
        for step in steps:
            problem = self.restore(state, step)
            if not problem:
                return step
            log.warning("the checkpoint of step %d is damaged: %s", step, problem)
        if steps or self._oldest:
            since = f" from step {self._oldest} on" if self._oldest else ""
            raise TrainingError(
                f"none of the {len(steps)} checkpoints in {self._folder}{since} can be read:"
                " repair the storage, or empty the folder to start over"
            )
        return None

    def restore(self, state: TrainingState, step: int) -> str:
        """Restore one checkpoint into `state` and return "", or what is wrong with it.

        A constant learning rate stays what the settings say now, as one with a schedule does.
        Raises TrainingError where it is another model's.
        """
        try:
            marker = self.read_marker(step)
            problem = catalogue.find_damage(marker, self._sizes(step))
            if problem:
                return problem
            difference = catalogue.find_difference(state.shapes, marker.variables)
            if difference:
                raise TrainingError(
                    f"the checkpoint of step {step} in {self._folder} belongs to another model: {difference};"
                    " use another folder, or empty this one"
                )
            with _keep_constant_rate(state):
                _checkpoint(state).read(self.path(step)).assert_existing_objects_matched()
        except (ValueError, OSError, AssertionError) as error:
            return str(error)
        except tf.errors.OpError as error:
            if is_peer_lost(error):
                raise
            return describe_error(error)
        return ""

    def move(self, after: int, target: str) -> list[int]:
        """Move every checkpoint after a step to another folder of the same storage; return their steps, newest first.

        Markers last: after a stop in the middle, what has not been moved whole is still found here, and is moved again.
        """
        names = [name for name in self._list() if (step := catalogue.find_step(name)) is not None and step > after]
        tf.io.gfile.makedirs(target)
        for name in sorted(names, key=lambda name: name in map(catalogue.marker_name, catalogue.find_steps(names))):
            tf.io.gfile.rename(f"{self._folder}/{name}", f"{target}/{name}", overwrite=True)
        return catalogue.find_steps(names)

    def copy(self, source: Checkpoints, step: int) -> str:
        """Copy a checkpoint from another folder and return "", or what is wrong with it; the marker comes last."""
        try:
            marker = source.read_marker(step)
        except ValueError as error:
            return str(error)
        problem = catalogue.find_damage(marker, source._sizes(step))
        if problem:
            return problem
        tf.io.gfile.makedirs(self._folder)
        for name in marker.files:
            tf.io.gfile.copy(f"{source._folder}/{name}", f"{self._folder}/{name}", overwrite=True)
        self._write_marker(marker)
        return ""

    def identify(self, step: int) -> dict[str, object]:
        """Return, by name, what changes when a file of a checkpoint is written again."""
        written: dict[str, object] = {}
        for name in self._list():
            if catalogue.belongs_to(name, step):
                with contextlib.suppress(tf.errors.NotFoundError):
                    facts = tf.io.gfile.stat(f"{self._folder}/{name}")
                    written[name] = (facts.length, facts.mtime_nsec)
        return written

    def save(self, state: TrainingState) -> str:
        """Save `state`, remove what is too old, and return the prefix; a failure leaves the older ones whole."""
        step, started = int(state.step.numpy()), time.monotonic()
        try:
            tf.io.gfile.makedirs(self._folder)
            self._remove_files(step)
            # Every task that writes a part makes this folder too. On GlusterFS, while one of three bricks is down, a
            # folder that two clients make at once can end up on one brick only: it then fails until all are back.
            tf.io.gfile.makedirs(f"{self.path(step)}{_PARTS_SUFFIX}")
            _checkpoint(state).write(self.path(step))
            sizes = self._sizes(step)
            self._write_marker(Marker(step, state.shapes, sizes))
        except _FILE_ERRORS as error:
            if is_peer_lost(error):
                raise
            self._remove_quietly(step)
            kept = self._describe_newest()
            raise TrainingError(
                f"cannot save step {step} in {self._folder}: {describe_error(error)} (last complete checkpoint: {kept})"
            ) from error
        self._warn_if_slow(step, time.monotonic() - started, sum(sizes.values()))
        self._tidy_up(step)
        return self.path(step)

    def remove_expired(self, newest: int) -> list[int]:
        """Remove the oldest checkpoints up to that of step `newest`, and return the steps that stay, the newest first.

        What is newer was passed over as damaged: it counts for nothing, and is written again when its step comes.
        """
        steps = [step for step in self.steps() if step <= newest]
        expired = catalogue.find_expired(steps, self._keep)
        for step in expired:
            self._remove_quietly(step)
        return [step for step in steps if step not in expired]

    def check_writable(self) -> None:
        """Raise TrainingError where nothing can be saved here: now, and not after the steps up to the next save."""
        probe = f"{self._folder}/{_PROBE}"
        try:
            with tf.io.gfile.GFile(probe, "w") as file:
                file.write("\n")
            tf.io.gfile.remove(probe)
        except _FILE_ERRORS as error:
            raise TrainingError(
                f"cannot write to {self._folder}: {describe_error(error)}"
                f" (last complete checkpoint: {self._describe_newest()})"
            ) from error

    def mark_ending(self, step: int, ending: str) -> None:
        """Note in the marker of a saved step that the training has ended with it."""
        self._write_marker(dataclasses.replace(self.read_marker(step), ending=ending))

    def _write_marker(self, marker: Marker) -> None:
        target = f"{self._folder}/{catalogue.marker_name(marker.step)}"
        draft = f"{target}.draft"
        with tf.io.gfile.GFile(draft, "w") as file:
            file.write(catalogue.dump_marker(marker))
        tf.io.gfile.rename(draft, target, overwrite=True)

    def _warn_if_slow(self, step: int, seconds: float, size: int) -> None:
        if seconds >= _SLOW_SECONDS and size / seconds < _SLOW_BYTES_PER_SECOND:
            log.warning(
                "saving step %d in %s took %.0f s for %.1f MB: the storage is slow, and the training waits for it",
                *(step, self._folder, seconds, size / 1e6),
            )

    def _tidy_up(self, newest: int) -> None:
        """Remove the oldest checkpoints, and tell TensorFlow's own tools that `newest` is the latest."""
        steps = self.remove_expired(newest)
        # TensorFlow keeps names as they are where the folder is absolute, else it makes them relative to the folder.
        name = catalogue.prefix if Path(self._folder).is_absolute() else self.path
        kept = [name(step) for step in sorted(steps)]
        try:
            tf.compat.v1.train.update_checkpoint_state(self._folder, kept[-1], kept)
        except _FILE_ERRORS as error:
            log.warning("cannot write %s/checkpoint: %s", self._folder, describe_error(error))

    def _remove_quietly(self, step: int) -> None:
        try:
            self._remove_files(step)
        except _FILE_ERRORS as error:
            log.warning("cannot remove the checkpoint of step %d: %s", step, describe_error(error))

    def _remove_files(self, step: int) -> None:
        """Remove every file of a checkpoint, the marker first, so that no half of it looks whole."""
        names = [name for name in self._list() if catalogue.belongs_to(name, step)]
        for name in sorted(names, key=lambda name: name != catalogue.marker_name(step)):
            path = f"{self._folder}/{name}"
            if tf.io.gfile.isdir(path):
                tf.io.gfile.rmtree(path)
            else:
                tf.io.gfile.remove(path)

    def _describe_newest(self) -> str:
        try:
            if "://" not in self._folder:
                # Of a folder on storage that fails, TensorFlow says that it is none.
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    Path(self._folder).stat()
            steps = self.steps()
        except _FILE_ERRORS:
            return "unknown"
        return f"step {steps[0]}" if steps else "none"

    def _sizes(self, step: int) -> dict[str, int]:
        own = [name for name in self._list() if catalogue.belongs_to(name, step) and ".json" not in name]
        return {name: tf.io.gfile.stat(f"{self._folder}/{name}").length for name in own}

    def _list(self) -> list[str]:
        if not tf.io.gfile.isdir(self._folder):
            return []
        return [name.rstrip("/") for name in tf.io.gfile.listdir(self._folder)]


@contextlib.contextmanager
def _keep_constant_rate(state: TrainingState) -> Iterator[None]:
    """Set the learning rate back to what it was, also after a read that failed half way."""
    rate = state.constant_rate
    wanted = None if rate is None else rate.numpy()
    try:
        yield
    finally:
        if rate is not None:
            rate.assign(wanted)


def _checkpoint(state: TrainingState) -> Any:
    """Return what saves and restores every variable of `state`.

    TensorFlow finds them by the attributes of objects, and so misses those of layers that a layer of the program's own
    keeps in a list or dictionary, and the states of random generators.
    """
    parts = {"model": state.model, "optimizer": state.optimizer, "step": state.step}
    plain = tf.train.Checkpoint(**parts)
    found = {id(part) for part in tf.train.TrackableView(plain).descendants()}
    rest = [variable for variable in state.saved_variables if id(variable) not in found]
    return tf.train.Checkpoint(**parts, rest=rest)
