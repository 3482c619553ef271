"""The program: `python -m mnist.train` plays the part that TF_CONFIG gives this process, or trains alone.

Turns every failure into an exit code: 2 wrong settings, 1 training cannot go on, 75 a peer was lost.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sys
import tempfile

from mnist.hyperparameters import SettingsError
from mnist.settings import Settings, read_settings

log = logging.getLogger("mnist.train")


def main() -> None:
    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        print(f"mnist.train: {error}", file=sys.stderr)
        sys.exit(2)
    _start_log()
    settings = _with_folders(settings)
    task = settings.task
    log.info("%s %d: loading TensorFlow; %s", task.type, task.index, settings.hyperparameters)
    # TensorFlow takes seconds to import, so wrong settings are refused and a sign of life is given before.
    from mnist.roles import run_task

    run_task(settings)


def _start_log() -> None:
    """Print this program's lines from INFO on; TensorFlow's own, hundreds at that level, from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    ours = logging.getLogger("mnist")
    ours.addHandler(handler)
    ours.setLevel(logging.INFO)
    ours.propagate = False


def _with_folders(settings: Settings) -> Settings:
    """Fill in the folders nobody named: a fresh one, since this process then trains alone."""
    checkpoints = settings.checkpoints_dir or tempfile.mkdtemp(prefix="mnist-")
    return dataclasses.replace(settings, checkpoints_dir=checkpoints, log_dir=settings.log_dir or f"{checkpoints}/logs")


if __name__ == "__main__":
    main()
