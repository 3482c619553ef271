"""The training library beside loops written by hand: the same network, examples and processes under every strategy."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.generator import ROOT
from benchmarks.library_case import GO_ON, REPLICAS, SETTINGS
from benchmarks.measure import Row, find_median_limits
from benchmarks.own_cluster import wait_for
from benchmarks.training import find_free_ports
from tests.cluster.testcluster.ingredients import tell
from trainchart_runtime import contract
from trainchart_training.place import (
    BETWEEN_GRAPH_ASYNC,
    BETWEEN_GRAPH_SYNC,
    CHIEF,
    IN_GRAPH,
    MIRRORED,
    MULTI_WORKER_MIRRORED,
    PARAMETER_SERVER,
    PS,
    SINGLE,
    WORKER,
)

BY_HAND, LIBRARY = "benchmarks.library_by_hand", "benchmarks.library_case"
_LEAST = 0.97
_ENDLESS = 10**9
_TURNS = 100
"""Many short ones: the speed of a shared machine changes by a third, but seldom within a second."""
_MOST_TURNS = 3 * _TURNS
_LEAST_STOLEN = 0.02
"""Of the processors' time; a turn in which the host took more for other guests is taken once more."""


@dataclass(frozen=True)
class Setup:
    """The processes of a strategy, and the steps between two marks: about a third of a second."""

    strategy: str
    every: int
    tasks: Mapping[str, int] = field(default_factory=dict)
    batches_per_step: int = 1


SETUPS = (
    Setup(SINGLE, 100),
    Setup(MIRRORED, 50, batches_per_step=REPLICAS),
    Setup(MULTI_WORKER_MIRRORED, 40, {WORKER: REPLICAS}, REPLICAS),
    Setup(PARAMETER_SERVER, 80, {CHIEF: 1, WORKER: REPLICAS, PS: 1}),
    Setup(BETWEEN_GRAPH_ASYNC, 80, {WORKER: REPLICAS, PS: 1}),
    Setup(BETWEEN_GRAPH_SYNC, 30, {WORKER: REPLICAS, PS: 1}, REPLICAS),
    Setup(IN_GRAPH, 30, {CHIEF: 1, WORKER: REPLICAS, PS: 1}, REPLICAS),
)


class Cluster:
    """One contender's processes, stopped but for its turns."""

    def __init__(self, module: str, setup: Setup, folder: Path) -> None:
        self._name = f"{setup.strategy}, {module}"
        self._folder = folder
        self._marks: list[tuple[float, int]] = []
        tasks = [(role, index) for role, count in setup.tasks.items() for index in range(count)]
        ports = find_free_ports(len(tasks))
        cluster: dict[str, list[str]] = {}
        for (role, _), port in zip(tasks, ports, strict=True):
            cluster.setdefault(role, []).append(f"127.0.0.1:{port}")
        self._processes = [self._start(module, setup, cluster, *task) for task in tasks or [(WORKER, 0)]]
        # The leader's marks; the tasks begin with it.
        threading.Thread(target=self._read, args=(self._processes[0].stdout,), daemon=True).start()

    def _start(
        self, module: str, setup: Setup, cluster: Mapping[str, list[str]], role: str, index: int
    ) -> subprocess.Popen[str]:
        settings = {
            "maxSteps": _ENDLESS,
            "checkpointSteps": _ENDLESS,
            "logSteps": setup.every,
            "batchSize": SETTINGS.batch_size,
            "shuffleBuffer": SETTINGS.shuffle_buffer,
        }
        task = {"cluster": cluster, "task": {"type": role, "index": index}} if cluster else {}
        variables = {
            contract.TF_CONFIG: json.dumps(task),
            contract.STRATEGY: setup.strategy,
            contract.HYPERPARAMETERS: json.dumps(settings),
            contract.CHECKPOINTS_DIR: str(self._folder / "checkpoints"),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        with (self._folder / f"{role}-{index}.log").open("wb") as log:
            return subprocess.Popen(
                # No process outlives this one.
                ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", module],
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _read(self, lines: Iterable[str]) -> None:
        for line in lines:
            at, step = line.split()
            self._marks.append((float(at), int(step)))

    def take_turn(self) -> float:
        """Let the processes, which were stopped, run as far as the second mark; return the seconds of a step."""
        begun = len(self._marks)
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
        leader = self._processes[0].stdin
        assert leader is not None
        leader.write(2 * GO_ON)
        leader.flush()
        # What the processes find in their caches after a pause is no part of the time: it begins with the first mark.
        self.wait_for_marks(begun + 2)
        self.stop()
        first, second = self._marks[begun:]
        return (second[0] - first[0]) / (second[1] - first[1])

    def wait_for_marks(self, count: int) -> None:
        """Wait until there are so many marks since the beginning."""
        wait_for(lambda: self._has_marks(count), f"mark {count} of {self._name}")

    def _has_marks(self, count: int) -> bool:
        if any(process.poll() is not None for process in self._processes):
            logs = "".join(path.read_text()[-2000:] for path in self._folder.glob("*.log"))
            raise RuntimeError(f"{self._name}: a process has ended:\n{logs}")
        return len(self._marks) >= count

    def stop(self) -> None:
        """Let the processes stand still, for less than the ten seconds after which TensorFlow gives up a worker.

        The leader waits between two calls, where the library does not take the pause for slowness.
        """
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)

    def end(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()


@dataclass(frozen=True)
class _Turn:
    """Seconds of a step of each contender, and the share of the processors that the host took away meanwhile."""

    hand_seconds: float
    library_seconds: float
    stolen: float


@contextmanager
def _start(module: str, setup: Setup) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(module, setup, Path(folder))
        try:
            yield cluster
        finally:
            cluster.end()


def measure_library() -> list[Row]:
    """Measure every strategy; both contenders' processes are there, and are stopped while it is not their turn."""
    return [row for setup in SETUPS for row in _compare(setup)]


def _compare(setup: Setup) -> list[Row]:
    tell(f"{setup.strategy}, by hand and by the library ...")
    with _start(BY_HAND, setup) as by_hand, _start(LIBRARY, setup) as library:
        for contender in (by_hand, library):
            contender.wait_for_marks(1)
        for contender in (by_hand, library):
            contender.stop()
        turns = _take_turns(by_hand, library)
    examples = setup.batches_per_step * SETTINGS.batch_size
    hand_speed = examples / statistics.median(turn.hand_seconds for turn in turns)
    library_speed = examples / statistics.median(turn.library_seconds for turn in turns)
    # Of neighbours, which met the machine at the same speed.
    ratios = sorted(turn.hand_seconds / turn.library_seconds for turn in turns)
    low, high = find_median_limits(ratios)
    return [
        Row(f"{setup.strategy}: a loop written by hand", hand_speed, "examples/s"),
        Row(f"{setup.strategy}: the library", library_speed, "examples/s"),
        Row(
            "ratio in each round, median",
            statistics.median(ratios),
            "× the loop",
            _LEAST,
            lowest=True,
            note=f"95 %: {low:.2f} to {high:.2f}",
        ),
    ]


def _take_turns(by_hand: Cluster, library: Cluster) -> list[_Turn]:
    """Return the turns in which the host took least from this machine."""
    turns: list[_Turn] = []
    while len(turns) < _MOST_TURNS and sum(turn.stolen <= _LEAST_STOLEN for turn in turns) < _TURNS:
        begun, stolen = time.monotonic(), psutil.cpu_times().steal
        hand_seconds, library_seconds = by_hand.take_turn(), library.take_turn()
        there_was = (time.monotonic() - begun) * len(os.sched_getaffinity(0))
        turns.append(_Turn(hand_seconds, library_seconds, (psutil.cpu_times().steal - stolen) / there_was))
    return sorted(turns, key=lambda turn: turn.stolen)[:_TURNS]
