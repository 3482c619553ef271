"""The file origin.json of a checkpoint folder: read and checked at the start, written before the first checkpoint."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

import tensorflow as tf

from trainchart_training.errors import SettingsError
from trainchart_training.failures import describe_error
from trainchart_training.place import Place
from trainchart_training.saving.origin import (
    ORIGIN_FILE,
    SIZE_LIMIT,
    Origin,
    dump_origin,
    find_change,
    find_refusal,
    parse_origin,
)

log = logging.getLogger(__name__)


class OriginFile:
    """Whose checkpoints a folder holds."""

    def __init__(self, place: Place) -> None:
        self._folder = place.checkpoints_dir
        self._path = f"{self._folder}/{ORIGIN_FILE}"
        self._mine = replace(place.origin, strategy=place.strategy)

    def check(self) -> str:
        """Return which other release has begun the folder, in words, or "".

        Raises SettingsError where it is another model's, or of a format that is not known here.
        """
        try:
            found = self._read()
        except (ValueError, OSError, tf.errors.OpError):
            return ""  # keep() says what it does about it
        if found is None:
            return ""
        refusal = find_refusal(self._mine, found, self._path)
        if refusal:
            raise SettingsError(f"TRAINCHART_CHECKPOINTS_DIR: {refusal}")
        return find_change(self._mine, found)

    def keep(self, has_checkpoints: bool) -> None:
        """Write the file where there is none; one that cannot be read is replaced only while there is nothing to lose.

        A folder that cannot be written is no failure here: whether checkpoints can be saved is found out next.
        """
        try:
            found = self._read()
        except (ValueError, OSError, tf.errors.OpError) as error:
            reason = describe_error(error)
            if has_checkpoints:
                log.warning("cannot read %s, so whose checkpoints these are is not known: %s", self._path, reason)
                return
            log.warning("%s cannot be read and is written again: %s", self._path, reason)
            found = None
        if found is not None:
            former = find_change(self._mine, found)
            if former and has_checkpoints:
                log.warning("the checkpoints in %s were begun by %s: going on from them", self._folder, former)
            return
        try:
            self._write()
        except (OSError, tf.errors.OpError) as error:
            log.warning("cannot write %s: %s", self._path, describe_error(error))

    def _read(self) -> Origin | None:
        """Return what the file says, None where there is none."""
        if not tf.io.gfile.exists(self._path):
            return None
        # To open a pipe may never end.
        if "://" not in self._path and not Path(self._path).is_file():
            raise ValueError("it is not a file")
        if tf.io.gfile.stat(self._path).length > SIZE_LIMIT:
            raise ValueError(f"it has more than {SIZE_LIMIT} bytes")
        with tf.io.gfile.GFile(self._path) as file:
            return parse_origin(file.read())

    def _write(self) -> None:
        draft = f"{self._path}.draft"
        tf.io.gfile.makedirs(self._folder)
        with tf.io.gfile.GFile(draft, "w") as file:
            file.write(dump_origin(self._mine, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))
        tf.io.gfile.rename(draft, self._path, overwrite=True)
