"""One training of four processes, in pods or started by hand, as seen from this machine: both are its processes.

What is looked at is the same for both: the chief's progress file, and whether a worker's process computes.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
from lightkube.core.exceptions import ApiError

from benchmarks.generator import ROOT
from benchmarks.own_cluster import wait_for
from tests.cluster.testcluster.faults import Site
from tests.cluster.testcluster.faults.processes import Container, ProcessNotFound, Victim, find_processes
from tests.cluster.testcluster.releases import Release
from trainchart_runtime import contract

TASKS = ("chief-0", "worker-0", "worker-1", "ps-0")
CHIEF = "chief-0"
HYPERPARAMETERS: Mapping[str, Any] = {"maxSteps": 1_000_000, "checkpointSteps": 200, "logSteps": 20}
"""A training without an end. It reports every 20 steps, so that both workers have something to do between reports."""
_COMPUTING_SECONDS = 0.2
"""CPU time that a worker has used since it listens once it is certain that it computes."""
_LISTENING = "0A"
_LOOP = 'until setpriv --pdeathsig KILL "$@"; do :; done'


@dataclass(frozen=True)
class Report:
    """What the chief has last written into its progress file."""

    at: float
    step: int


class Training(Protocol):
    """A training that runs, or is about to."""

    def begin(self) -> float:
        """Start it and return when that began, in Unix seconds."""

    def find_program(self, task: str) -> psutil.Process | None:
        """Return the process that plays a task; None while there is none."""

    def find_port(self, task: str) -> int:
        """Return where TensorFlow's server of a task listens."""

    def read_report(self) -> Report | None:
        """Return the last report; None before there is one."""

    def end(self) -> None:
        """End it, and return when nothing of it is left."""


@dataclass
class ByHand:
    """The same processes as in the pods, on loopback, each in a shell loop that starts it again when it fails."""

    folder: Path

    def __post_init__(self) -> None:
        self._loops: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = dict(zip(TASKS, find_free_ports(len(TASKS)), strict=True))

    def begin(self) -> float:
        begun = time.time()
        self.folder.mkdir()
        for task in TASKS:
            with (self.folder / f"{task}.log").open("wb") as log:
                self._loops[task] = subprocess.Popen(
                    # Neither loop nor program outlives this process.
                    ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _LOOP, "sh", sys.executable, "-m", "mnist.train"],
                    cwd=ROOT / "examples" / "mnist",
                    env={**os.environ, **self._describe(task)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        return begun

    def _describe(self, task: str) -> dict[str, str]:
        cluster: dict[str, list[str]] = {}
        for name, port in self._ports.items():
            cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{port}")
        task_type, _, index = task.partition("-")
        return {
            contract.TF_CONFIG: json.dumps({"cluster": cluster, "task": {"type": task_type, "index": int(index)}}),
            contract.HYPERPARAMETERS: json.dumps(dict(HYPERPARAMETERS)),
            contract.CHECKPOINTS_DIR: str(self.folder / "checkpoints"),
            contract.TENSORBOARD_DIR: str(self.folder / "logs"),
            contract.PROGRESS_FILE: str(self.folder / f"{task}.json"),
        }

    def find_program(self, task: str) -> psutil.Process | None:
        return _find_child(self._loops[task].pid)

    def find_port(self, task: str) -> int:
        return self._ports[task]

    def read_report(self) -> Report | None:
        return _read_report(self.folder / f"{CHIEF}.json")

    def end(self) -> None:
        programs = [self.find_program(task) for task in self._loops]
        # The loops first, or they start the programs again.
        for loop in self._loops.values():
            loop.kill()
            loop.wait()
        left = [program for program in programs if program]
        for program in left:
            program.kill()
        psutil.wait_procs(left, timeout=20)


@dataclass
class InPods:
    """A release of charts/mnist on the tests' cluster."""

    site: Site
    release: Release

    def __post_init__(self) -> None:
        self._launchers: dict[str, psutil.Process] = {}

    def begin(self) -> float:
        begun = time.time()
        self.release.install()
        return begun

    def name_pod(self, task: str) -> str:
        return f"{self.release.name}-mnist-{task}"

    def find_launcher(self, task: str) -> psutil.Process | None:
        """Return the first process of a task's pod."""
        known = self._launchers.get(task)
        if known is None or not known.is_running() or known.status() == psutil.STATUS_ZOMBIE:
            self._launchers.pop(task, None)
            try:
                container = Container(self.release.namespace, self.name_pod(task), contract.TRAINING_CONTAINER)
                (self._launchers[task],) = find_processes(self.site, container, Victim.LAUNCHER)
            except (ProcessNotFound, ApiError):
                return None
        return self._launchers[task]

    def find_program(self, task: str) -> psutil.Process | None:
        launcher = self.find_launcher(task)
        return _find_child(launcher.pid) if launcher else None

    def find_port(self, task: str) -> int:
        return contract.TF_PORT

    def read_report(self) -> Report | None:
        launcher = self.find_launcher(CHIEF)
        return read_pod_report(launcher) if launcher else None

    def end(self) -> None:
        self.release.uninstall()
        client = self.site.access.client()
        wait_for(lambda: not self.release.pods(client), f"the end of {self.release.name}'s pods")


def read_pod_report(launcher: psutil.Process) -> Report | None:
    """Return the last report in the pod of a launcher, for as long as that lives."""
    folder = Path(f"/proc/{launcher.pid}/root{contract.STATE_MOUNT}")
    return _read_report(folder / contract.PROGRESS_FILE_NAME)


def wait_until_computing(training: Training, task: str, former: psutil.Process) -> float:
    """Wait until a worker's next process computes, and return when."""

    def find_next() -> psutil.Process | None:
        program = training.find_program(task)
        return program if program is not None and program != former and _listens(program, training, task) else None

    program = wait_for(find_next, f"a server of {task}")
    before = _cpu_seconds(program)
    wait_for(lambda: _cpu_seconds(program) > before + _COMPUTING_SECONDS, f"work for {task}")
    return time.time()


def wait_for_next_chief(training: Training, former: psutil.Process | None) -> Report:
    """Wait until a chief that is not the former one has trained, and return its first report seen."""

    def find_next() -> bool:
        program = training.find_program(CHIEF)
        return program is not None and program != former

    wait_for(find_next, "another chief")
    since = time.time()

    def read() -> Report | None:
        report = training.read_report()
        return report if report and report.at > since else None

    return wait_for(read, "training again")


def _read_report(file: Path) -> Report | None:
    try:
        with file.open() as opened:
            document = json.load(opened)
            return Report(os.fstat(opened.fileno()).st_mtime, int(document["step"]))
    except (OSError, ValueError):
        return None


def _find_child(pid: int) -> psutil.Process | None:
    # psutil's own way looks at every process of the machine, and this is asked twenty times a second.
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            return psutil.Process(int(file.read_text().split()[0]))
        except (OSError, IndexError, psutil.NoSuchProcess):
            continue
    return None


def _listens(program: psutil.Process, training: Training, task: str) -> bool:
    """Say whether the port is taken in the network of the program."""
    port = f":{training.find_port(task):04X}"
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{program.pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            return False
        if any(line.split()[1].endswith(port) and line.split()[3] == _LISTENING for line in lines):
            return True
    return False


def _cpu_seconds(program: psutil.Process) -> float:
    times = program.cpu_times()
    return float(times.user + times.system)


def find_free_ports(number: int) -> list[int]:
    """Return ports of loopback that nothing listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
