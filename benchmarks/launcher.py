"""What the launcher costs: before the program's first instruction, and while it runs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import REPEATS, Row
from trainchart_launcher.bundle import build_installed_launcher
from trainchart_runtime import contract

_STARTED = "import os, time; print(time.monotonic(), os.getppid(), flush=True); input()"
_MEGABYTE = 1e6
_WORK = """
import time
begun = time.monotonic()
total = 0
for step in range(1, 7501):
    for number in range(12000):
        total += number * number % 7
    if step % 10 == 0:
        print(f"step {step}: loss={1 / step:.5f} accuracy={1 - 1 / step:.5f} {step * 64} examples", flush=True)
print(time.monotonic() - begun)
"""
"""Some seconds of work with a line of output every few milliseconds, as Keras writes them."""


@dataclass(frozen=True)
class Pod:
    """A folder with the launcher and the files of a pod."""

    folder: Path

    def prepare(self) -> None:
        (self.folder / "launcher.pyz").write_bytes(build_installed_launcher())
        roles = {"worker": {"name": "exp-worker", "replicas": 1}}
        cluster = {"strategy": "single", "service": "exp", "port": 2222, "statusPort": 2223, "roles": roles}
        (self.folder / "cluster.json").write_text(json.dumps(cluster))

    def start(self, code: str, *, launched: bool, run: str) -> subprocess.Popen[bytes]:
        variables = {
            contract.TASK_TYPE: "worker",
            contract.POD_NAME: "exp-worker-0",
            contract.CLUSTER_FILE: str(self.folder / "cluster.json"),
            contract.STATE_DIR: str(self.folder / f"state-{run}"),
            contract.TERMINATION_FILE: str(self.folder / "termination"),
            contract.RUN_ID: run,
        }
        command = [sys.executable, "-c", code]
        if launched:
            command = [sys.executable, str(self.folder / "launcher.pyz"), "--", *command]
        return subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )


def measure_launcher() -> list[Row]:
    """Measure start, memory and throughput of a program under the launcher and without it, by turns."""
    with tempfile.TemporaryDirectory() as name:
        pod = Pod(Path(name))
        pod.prepare()
        delays: dict[bool, list[float]] = {True: [], False: []}
        memories: list[float] = []
        for turn in range(REPEATS + 1):
            for launched in (False, True):
                delay, memory = _start(pod, launched, f"start-{turn}")
                if turn:
                    delays[launched].append(delay)
                    memories += [memory] if launched else []
        works: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(REPEATS):
            for launched in (False, True):
                works[launched].append(_work(pod, launched, f"work-{turn}"))
    raw, under = statistics.median(delays[False]), statistics.median(delays[True])
    # Whatever disturbs a long run makes it longer, so the shortest of each tell what the launcher costs.
    direct, piped = min(works[False]), min(works[True])
    return [
        Row("a Python program's first instruction, started directly", raw * 1000, "ms"),
        Row("the same under the launcher", under * 1000, "ms"),
        Row("added by the launcher", (under - raw) * 1000, "ms", mark=45),
        Row("the launcher's memory at that moment", statistics.median(memories) / _MEGABYTE, "MB", mark=20),
        Row("a program that computes and prints, directly, at best", direct, "s"),
        Row("the same under the launcher, at best", piped, "s"),
        Row("throughput under the launcher", direct / piped, "× the raw program", mark=0.98, lowest=True),
    ]


def _start(pod: Pod, launched: bool, run: str) -> tuple[float, float]:
    """Return the seconds until the program's first instruction, and the bytes its parent holds then."""
    begun = time.monotonic()
    process = pod.start(_STARTED, launched=launched, run=run)
    assert process.stdout is not None
    assert process.stdin is not None
    line = process.stdout.readline().split()
    memory = _resident_bytes(process.pid)
    process.stdin.write(b"\n")
    process.communicate()
    return float(line[0]) - begun, memory


def _work(pod: Pod, launched: bool, run: str) -> float:
    """Return the seconds that the program itself took for its work, its start left out."""
    stdout, _ = pod.start(_WORK, launched=launched, run=run).communicate()
    return float(stdout.splitlines()[-1])


def _resident_bytes(pid: int) -> float:
    pages = int(Path("/proc", str(pid), "statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
