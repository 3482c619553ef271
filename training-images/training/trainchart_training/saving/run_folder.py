"""The folder of checkpoints as a run begins in it: whose it is, and from which checkpoint the run goes on.

The leader decides, moves and copies, and writes origin.json; the others wait until it has.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import tensorflow as tf

from trainchart_training.errors import SettingsError, TrainingError
from trainchart_training.failures import describe_error
from trainchart_training.place import Place
from trainchart_training.saving.checkpoints import Checkpoints
from trainchart_training.saving.origin import (
    ORIGIN_FILE,
    SIZE_LIMIT,
    Origin,
    RunStart,
    add_run,
    dump_origin,
    find_change,
    find_refusal,
    parse_origin,
)
from trainchart_training.saving.resume import LATEST, Beginning, Wish, decide_beginning

log = logging.getLogger(__name__)

EARLIER = "earlier"
"""Folder, in that of the checkpoints, for those that a later run of the same release does not go on from."""
POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 10.0
_FILE_ERRORS = (OSError, tf.errors.OpError)


class RunFolder:
    """Where a run keeps its checkpoints."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = place.checkpoints_dir
        self._path = f"{self._folder}/{ORIGIN_FILE}"
        self._mine = replace(place.origin, strategy=place.strategy)
        self._checkpoints = Checkpoints(self._folder)
        self._pending: Origin | None = None
        self.former = ""
        """Which other release has used the folder last, in words, or ""; known once the run has begun."""

    def begin(self) -> int:
        """Begin the run, or go on with it; return the step below which no checkpoint may be restored.

        Once for each start of this process, before anything else looks at the checkpoints. Only the leader writes.

        Raises:
            SettingsError: the folder is another model's, of a format that is not known here, or not as run.resume says.
            TrainingError: what lies there cannot be read, moved or copied.
        """
        return self._begin() if self._place.is_leader else self._wait()

    def _begin(self) -> int:
        beginning, steps, found = self._decide()
        if beginning.refusal:
            raise SettingsError(beginning.refusal)
        if steps and self.former:
            log.warning("the checkpoints in %s were written by %s: continuing from them", self._folder, self.former)
        if beginning.is_begun:
            if found is None:
                self._plan_first(has_checkpoints=bool(steps))
            return beginning.oldest
        wish = self._place.resume
        assert wish is not None
        mine = self._mine
        oldest: int | None = beginning.oldest or None
        try:
            if beginning.aside_after is not None:
                self._set_aside(beginning.aside_after, len(found.runs) if found else 0)
            if beginning.is_copied:
                if found is None:
                    # By this, a copy that was cut short is known as this release's own.
                    found = replace(mine, created_at=_now())
                    self._write(found)
                oldest = self._copy(wish)
        except _FILE_ERRORS as error:
            raise TrainingError(f"the run cannot begin in {self._folder}: {describe_error(error)}") from error
        run = RunStart(mine.release, mine.namespace, mine.run, oldest, wish.release, _now())
        begun = add_run(found or replace(mine, created_at=_now()), run)
        if steps or beginning.is_copied:
            self._write(begun)
        else:
            self._pending = begun
        return oldest or 0

    def keep(self) -> None:
        """Write what begin() has left: before the first checkpoint, but not before the program has been tried."""
        if self._pending is not None:
            self._write(self._pending)
            self._pending = None

    def _wait(self) -> int:
        """Return what the leader has begun with; at once where it has nothing to decide."""
        started, is_told = time.monotonic(), False
        while True:
            beginning, steps, _ = self._decide()
            is_patient = time.monotonic() - started <= _PATIENCE_SECONDS
            # A network file system may show what the leader has copied before it shows whose it is.
            if beginning.refusal and not is_patient:
                raise SettingsError(beginning.refusal)
            if not beginning.refusal and (beginning.is_begun or not (steps or beginning.is_copied)):
                return beginning.oldest
            if not is_told and not is_patient:
                log.info("waiting until the leading task has begun the run in %s", self._folder)
                is_told = True
            time.sleep(POLL_SECONDS)

    def _decide(self) -> tuple[Beginning, list[int], Origin | None]:
        """Return how the run begins, the steps that have a complete checkpoint, and what origin.json says.

        Raises SettingsError where the folder is another model's, and TrainingError where it cannot be read.
        """
        # The steps first: whose a checkpoint is stands in the file before the checkpoint is there.
        steps = self._checkpoints.steps()
        found = self._read(is_needed=self._place.resume is not None)
        if found is not None:
            refusal = find_refusal(self._mine, found, self._path)
            if refusal:
                raise SettingsError(f"TRAINCHART_CHECKPOINTS_DIR: {refusal}")
            self.former = find_change(self._mine, found)
        return decide_beginning(self._place.resume, self._mine, found, steps, self._folder), steps, found

    def _set_aside(self, after: int, number: int) -> None:
        target = self._find_target(number)
        tf.io.gfile.makedirs(target)
        # Before the checkpoints: without those, nothing would be set aside again after a stop.
        for name in (ORIGIN_FILE, "evaluations.json"):
            if tf.io.gfile.exists(f"{self._folder}/{name}"):
                tf.io.gfile.copy(f"{self._folder}/{name}", f"{target}/{name}", overwrite=True)
        steps = self._checkpoints.move(after, target)
        named = f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[-1]} to {steps[0]}"
        log.info("moved the checkpoints of %s, written by an earlier run, to %s", named, target)

    def _find_target(self, number: int) -> str:
        """Return a folder that no other beginning has used: `number`, or the next; after a stop, the one begun with."""
        while True:
            target = f"{self._folder}/{EARLIER}/{number}"
            origin = f"{target}/{ORIGIN_FILE}"
            if not tf.io.gfile.exists(origin) or _read_text(origin) == _read_text(self._path):
                return target
            number += 1

    def _copy(self, wish: Wish) -> int:
        """Copy the checkpoint that the run is to begin with from another release's folder; return its step."""
        source = Checkpoints(wish.folder)
        found = self._read(is_needed=True, folder=wish.folder)
        refusal = find_refusal(self._mine, found, f"{wish.folder}/{ORIGIN_FILE}") if found else ""
        if refusal:
            raise SettingsError(f"run.resumeRelease: {refusal}")
        steps = source.steps()
        wanted = steps if wish.resume == LATEST else [step for step in steps if step == wish.resume]
        for step in wanted:
            problem = self._checkpoints.copy(source, step)
            if not problem:
                log.info("copied the checkpoint of step %d of release %s to %s", step, wish.release, self._folder)
                return step
            log.warning("the checkpoint of step %d of release %s is damaged: %s", step, wish.release, problem)
        there = ", ".join(map(str, sorted(steps)))
        what = "" if wish.resume == LATEST else f" of step {wish.resume}"
        raise SettingsError(
            f"run.resumeRelease: release {wish.release} has no checkpoint{what} that can be used in {wish.folder}"
            + (f"; there are steps {there}" if there else ", where there are none")
        )

    def _read(self, is_needed: bool, folder: str = "") -> Origin | None:
        """Return what origin.json says, None where there is none or, unless it is needed, where it cannot be read."""
        path = f"{folder or self._folder}/{ORIGIN_FILE}"
        try:
            if not tf.io.gfile.exists(path):
                return None
            return _parse_file(path)
        except ValueError as error:
            if is_needed and (folder or self._checkpoints.steps()):
                raise TrainingError(f"{path} cannot be read: {error}; restore it, or remove it") from error
        except _FILE_ERRORS as error:
            if is_needed:
                raise TrainingError(f"{path} cannot be read: {describe_error(error)}") from error
        return None

    def _plan_first(self, has_checkpoints: bool) -> None:
        """Have the file written where there is none; one that cannot be read stays where there is something to lose."""
        try:
            is_damaged = tf.io.gfile.exists(self._path)
        except _FILE_ERRORS:
            is_damaged = True
        if is_damaged and has_checkpoints:
            log.warning("cannot read %s, so whose checkpoints these are is not known", self._path)
            return
        if is_damaged:
            log.warning("%s cannot be read and is rewritten", self._path)
        self._pending = replace(self._mine, created_at=_now())

    def _write(self, origin: Origin) -> None:
        """Write the file; a folder that cannot be written is no failure yet: the first checkpoint finds that out."""
        draft = f"{self._path}.draft"
        try:
            tf.io.gfile.makedirs(self._folder)
            with tf.io.gfile.GFile(draft, "w") as file:
                file.write(dump_origin(origin))
            tf.io.gfile.rename(draft, self._path, overwrite=True)
        except _FILE_ERRORS as error:
            log.warning("cannot write %s: %s", self._path, describe_error(error))


def _read_text(path: str) -> str:
    with tf.io.gfile.GFile(path) as file:
        return str(file.read())


def _parse_file(path: str) -> Origin:
    # To open a pipe may never end.
    if "://" not in path and not Path(path).is_file():
        raise ValueError("it is not a file")
    if tf.io.gfile.stat(path).length > SIZE_LIMIT:
        raise ValueError(f"it has more than {SIZE_LIMIT} bytes")
    with tf.io.gfile.GFile(path) as file:
        return parse_origin(file.read())


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
