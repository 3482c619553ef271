"""What `trainchart doctor` looks at on this machine: what generating, local runs and builds need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from trainchart.doctor.refusals import describe_amount
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING, Result
from trainchart.errors import TrainchartError
from trainchart.helm.io.choose import find_engine
from trainchart.images.io.program import find_builder
from trainchart.local.io.ports import reserve_ports

_FIND = """
import sys
sys.path[:] = [each for each in sys.path if each]  # no module of the current folder, which may be anyone's
import importlib.metadata, importlib.util
names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos")
found = {}
for each in importlib.metadata.distributions():
    name = (each.metadata["Name"] or "").lower().replace("_", "-")
    if name in names:
        found[name] = each.version
spec = importlib.util.find_spec("tensorflow")
print("%d.%d" % sys.version_info[:2], next(iter(found.values()), "?") if spec else "-")
"""
_PYTHON_SECONDS = 60
_LEAST_DISK, _LEAST_MEMORY = 2 * 2**30, 2 * 2**30
_OLDEST_PYTHON = (3, 8)


def examine_machine(python: str, runs_folder: Path) -> Iterator[Result]:
    """Yield what this machine has for generating charts, training locally and building images."""
    yield from _examine_python(python or sys.executable)
    yield _examine_engine()
    yield _examine_space(runs_folder)
    yield _examine_memory()
    yield _examine_ports()
    yield _examine_builders()


def _examine_python(python: str) -> Iterator[Result]:
    try:
        done = subprocess.run(
            [python, "-c", _FIND], capture_output=True, text=True, timeout=_PYTHON_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield Result(
            "python", FAILED, f"{python} does not run: {error}", "--python takes an interpreter's path or name"
        )
        return
    parts = done.stdout.split()
    if done.returncode or len(parts) != 2:
        yield Result(
            "python", FAILED, f"{python} fails: {done.stderr.strip()[-200:]}", "fix it, or choose another: --python"
        )
        return
    version, tensorflow = parts
    is_old = tuple(map(int, version.split("."))) < _OLDEST_PYTHON
    yield Result(
        "python", FAILED if is_old else OK, f"Python {version} ({python})", "the launcher needs 3.8" if is_old else ""
    )
    if tensorflow == "-":
        yield Result(
            "tensorflow",
            WARNING,
            "this Python has no TensorFlow, so local runs of models that use it fail",
            "pip install tensorflow, or choose a Python that has it: --python",
        )
    else:
        yield Result("tensorflow", OK, f"TensorFlow {tensorflow}")


def _examine_engine() -> Result:
    try:
        return Result("helm", OK, f"Helm engine: {find_engine().name}")
    except TrainchartError as error:
        return Result("helm", FAILED, error.message, error.hint)


def _examine_space(folder: Path) -> Result:
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(place).free
    words = f"{describe_amount('storage', free * 1000)} free in {place}"
    is_little = free < _LEAST_DISK
    if not os.access(place, os.W_OK):
        return Result("disk", FAILED, f"{place} cannot be written", "choose another folder for local runs: --runs-dir")
    return Result("disk", WARNING if is_little else OK, words, "checkpoints and logs may not fit" if is_little else "")


def _examine_memory() -> Result:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        lines = Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else []
        available = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), free)
    except (OSError, ValueError):
        return Result("memory", UNKNOWN, "how much memory is free is not known")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    is_little = available < _LEAST_MEMORY
    words = f"{describe_amount('memory', available * 1000)} of memory available, {cores} cores"
    remedy = "each process of TensorFlow takes about 0.5Gi: run fewer, or smaller models" if is_little else ""
    return Result("memory", WARNING if is_little else OK, words, remedy)


def _examine_ports() -> Result:
    try:
        reserve_ports(["doctor:2222"]).close()
    except (TrainchartError, OSError) as error:
        return Result("ports", FAILED, f"no port can be reserved for local runs: {error}")
    return Result("ports", OK, "ports for local runs can be reserved")


def _examine_builders() -> Result:
    try:
        return Result("builder", OK, f"images are built with {find_builder(None, os.environ).program}")
    except TrainchartError as error:
        return Result("builder", WARNING, f"images cannot be built here: {error.message}", error.hint)
