"""What can only be seen on GPUs: `mirrored` on one and on several, memory growth, and mixed precision.

    python -m benchmarks.gpu

prints a table. It needs TensorFlow with CUDA (pip install 'tensorflow[and-cuda]') and a checkout, and nothing else. The
other benchmarks need tools that a machine with GPUs has no use for, so this one is started by itself.

Exit code 0: measured. 1: a measurement failed. 2: a wrong option. 69: TensorFlow sees no GPU, and nothing was measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.page import dump_section

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "training-images" / "training"
"""Found by the processes that measure, whether it is installed or not."""
EXIT_NO_GPU = 69
"""EX_UNAVAILABLE."""
FLOAT32, FLOAT16, BFLOAT16 = "float32", "mixed_float16", "mixed_bfloat16"


@dataclass(frozen=True)
class Case:
    """What one process measures."""

    devices: int
    policy: str = FLOAT32
    """One of Keras' precision policies."""
    has_growth: bool = False
    """TensorFlow takes GPU memory as it needs it, instead of all of it at its start."""
    is_rehearsal: bool = False
    """The devices are parts of the processor, and the work is a hundredth."""


@dataclass(frozen=True)
class Result:
    examples_per_second: float
    peak_mib: float | None = None
    """What tensors took on the first GPU at most; None where there is none."""
    taken_mib: float | None = None
    """What was taken of the first GPU's memory by any process; None where nvidia-smi does not tell."""


class MeasurementFailed(Exception):
    """The process of a case ended with an error; the message is the case, and what it wrote last."""


def plan_cases(devices: int, is_rehearsal: bool = False) -> list[Case]:
    """Return what is measured with so many devices: powers of two and all of them, and on one all that is compared."""
    numbers = sorted({2**power for power in range(devices.bit_length())} | {devices})
    cases = [Case(number) for number in numbers]
    cases += [Case(1, has_growth=True), Case(1, FLOAT16), Case(1, BFLOAT16)]
    return [dataclasses.replace(case, is_rehearsal=is_rehearsal) for case in cases]


def list_rows(results: Mapping[Case, Result]) -> list[Row]:
    """Return the table's lines; what a case is compared with is the case of one plain device, the first."""
    plain = next(iter(results.values()))
    rows = []
    for case, result in results.items():
        name = _describe(case)
        rows.append(Row(name, result.examples_per_second, "examples/s"))
        if result is not plain:
            ratio = result.examples_per_second / plain.examples_per_second
            rows.append(Row("ratio", ratio, "of one device, float32"))
        if result.peak_mib is not None:
            rows.append(Row(f"{name}: memory of its tensors at most", result.peak_mib, "MiB"))
        if result.taken_mib is not None:
            rows.append(Row(f"{name}: memory taken of the first GPU", result.taken_mib, "MiB"))
    return rows


def _describe(case: Case) -> str:
    devices = f"mirrored on {case.devices} device{'s' if case.devices > 1 else ''}"
    return f"{devices}, {case.policy}{', memory growth' if case.has_growth else ''}"


def measure_in_process(case: Case) -> Result:
    """Measure a case in a fresh process; raises MeasurementFailed."""
    path = os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH", "")]))
    argv = [sys.executable, "-m", "benchmarks.gpu_case", json.dumps(dataclasses.asdict(case))]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(argv, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-15:])
        raise MeasurementFailed(f"{_describe(case)}: exit code {done.returncode}\n{last}")
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def list_gpus() -> list[str]:
    """Return the names of the GPUs that TensorFlow sees here."""
    import tensorflow as tf

    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    return [str(detail.get("device_name", "GPU")) for detail in details]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rehearse-on-cpu", type=int, default=0, metavar="DEVICES", help="run it all on parts of the processor"
    )
    rehearsed = parser.parse_args().rehearse_on_cpu
    if rehearsed < 0:
        parser.error(f"--rehearse-on-cpu: expected a number of devices, got {rehearsed}")
    names = [f"part {number + 1} of the processor" for number in range(rehearsed)] or list_gpus()
    if not names:
        print(
            "SKIPPED, nothing was measured: TensorFlow sees no GPU here.\n"
            "Expected a driver (nvidia-smi tells), and TensorFlow with CUDA: pip install 'tensorflow[and-cuda]'.\n"
            "--rehearse-on-cpu 2 runs the same code on two parts of the processor.",
            file=sys.stderr,
        )
        return EXIT_NO_GPU
    results = {}
    for case in plan_cases(len(names), is_rehearsal=bool(rehearsed)):
        print(f"{_describe(case)} ...", file=sys.stderr, flush=True)
        try:
            results[case] = measure_in_process(case)
        except MeasurementFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    title = "A rehearsal without GPUs: its numbers mean nothing" if rehearsed else "On GPUs"
    print(dump_section(title, f"{datetime.date.today()}, {', '.join(names)}", list_rows(results), reason=""), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
