"""One process that saves and restores a checkpoint in several folders by turns, beside `cp` of the same files.

python storage_case.py ROUNDS '{"name": ["folder to write in", "the same folder, seen by another client"], ...}'
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainchart_training import Hyperparameters, Training
from trainchart_training.saving.checkpoints import Checkpoints
from trainchart_training.saving.state import TrainingState, create_state

UNITS = 1760
"""Of two layers, with Adam's two moments of each weight: about 50 MB."""


def main() -> None:
    rounds, places = int(sys.argv[1]), json.loads(sys.argv[2])
    state = make_state()
    taken: dict[str, dict[str, list[float]]] = {name: {} for name in places}
    size = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for turn in range(rounds + 1):
            for name, (folder, other) in places.items():
                seconds, size = take_turn(state, Path(folder), Path(other), Path(memory), turn)
                for what, value in seconds.items():
                    taken[name].setdefault(what, []).extend([value] if turn else [])
    print(json.dumps({"bytes": size, "seconds": taken}))


def make_state() -> TrainingState:
    import keras

    def build(_: Hyperparameters) -> Any:
        return keras.Sequential([keras.Input((UNITS,)), keras.layers.Dense(UNITS), keras.layers.Dense(UNITS // 3)])

    training = Training(
        model=build,
        examples=lambda *_: None,
        optimizer=lambda _: keras.optimizers.Adam(),
        loss=keras.losses.MeanSquaredError(),
    )
    return create_state(training, Hyperparameters())


def take_turn(
    state: TrainingState, folder: Path, other: Path, memory: Path, turn: int
) -> tuple[Mapping[str, float], int]:
    """Save, copy, restore and copy back; return the seconds of each, and the bytes."""
    step = 100 * (turn + 1)
    state.step.assign(step)
    saved, copied, name = folder / "saved", folder / "copied", f"ckpt-{step}"
    copied.mkdir(exist_ok=True)
    seconds = {"save": measure(lambda: save(state, saved, f"{name}.*"))}
    shutil.rmtree(memory / "source", ignore_errors=True)
    shutil.copytree(saved, memory / "source")
    files = sorted((memory / "source").glob(f"{name}.*"))
    seconds["cp there"] = measure(lambda: copy(files, copied, is_flushed=True))
    there = [other / "saved" / file.name for file in files]
    drop_from_cache(there)
    seconds["restore"] = measure(lambda: restore(state, other / "saved", step))
    drop_from_cache(there)
    seconds["cp back"] = measure(lambda: copy(there, memory))
    size = sum(file.stat().st_size for file in files)
    for file in (*files, *copied.iterdir()):
        file.unlink()
    return seconds, size


def measure(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def save(state: TrainingState, folder: Path, names: str) -> None:
    Checkpoints(str(folder)).save(state)
    flush(folder.glob(names))


def restore(state: TrainingState, folder: Path, step: int) -> None:
    problem = Checkpoints(str(folder)).restore(state, step)
    if problem:
        raise RuntimeError(problem)


def copy(files: Sequence[Path], folder: Path, is_flushed: bool = False) -> None:
    subprocess.run(["cp", *files, folder], check=True)
    if is_flushed:
        flush(folder / file.name for file in files)


def flush(files: Iterable[Path]) -> None:
    """Wait until files are on the disks."""
    for file in files:
        with file.open("rb") as handle:
            os.fsync(handle.fileno())


def drop_from_cache(files: Iterable[Path]) -> None:
    """Let the next reader of files on this machine read them from where they are."""
    for file in files:
        with file.open("rb") as handle:
            os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    main()
