"""What the benchmark of GPUs plans and shows, and says where there is none; and that it runs, on parts of the CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.gpu import (
    BFLOAT16,
    EXIT_NO_GPU,
    FLOAT16,
    ROOT,
    Case,
    MeasurementFailed,
    Result,
    list_rows,
    main,
    measure_in_process,
    plan_cases,
)
from benchmarks.page import dump_section


@pytest.mark.parametrize(
    ("devices", "numbers"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6])]
)
def test_powers_of_two_and_all_devices_are_mirrored(devices: int, numbers: list[int]) -> None:
    cases = plan_cases(devices)

    assert [case.devices for case in cases if case == Case(case.devices)] == numbers
    assert cases[len(numbers) :] == [Case(1, has_growth=True), Case(1, FLOAT16), Case(1, BFLOAT16)]


def test_everything_is_compared_with_one_plain_device() -> None:
    results = {
        Case(1): Result(1000.0, peak_mib=900.0, taken_mib=70_000.0),
        Case(2): Result(1900.0, peak_mib=900.0),
        Case(1, has_growth=True): Result(990.0, peak_mib=900.0, taken_mib=1500.0),
    }

    lines = dump_section("On GPUs", "today", list_rows(results), reason="").splitlines()

    assert [line for line in lines if line.startswith(("| mirrored", "| ratio"))] == [
        "| mirrored on 1 device, float32 | 1000 examples/s |  |  |",
        "| mirrored on 1 device, float32: memory of its tensors at most | 900 MiB |  |  |",
        "| mirrored on 1 device, float32: memory taken of the first GPU | 70000 MiB |  |  |",
        "| mirrored on 2 devices, float32 | 1900 examples/s |  |  |",
        "| ratio | 1.9 of one device, float32 |  |  |",
        "| mirrored on 2 devices, float32: memory of its tensors at most | 900 MiB |  |  |",
        "| mirrored on 1 device, float32, memory growth | 990 examples/s |  |  |",
        "| ratio | 0.99 of one device, float32 |  |  |",
        "| mirrored on 1 device, float32, memory growth: memory of its tensors at most | 900 MiB |  |  |",
        "| mirrored on 1 device, float32, memory growth: memory taken of the first GPU | 1500 MiB |  |  |",
    ]


def test_a_case_that_fails_is_named_with_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")

    with pytest.raises(MeasurementFailed, match="mirrored on 1 device, mixed_float16: exit code 1"):
        measure_in_process(Case(1, FLOAT16))


@pytest.mark.tensorflow
def test_without_a_gpu_it_says_so_with_its_own_exit_code() -> None:
    command = [sys.executable, "-m", "benchmarks.gpu"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (EXIT_NO_GPU, "")
    assert "SKIPPED, nothing was measured: TensorFlow sees no GPU here." in done.stderr


@pytest.mark.tensorflow
def test_several_devices_in_mixed_precision_are_measured() -> None:
    result = measure_in_process(Case(2, FLOAT16, is_rehearsal=True))

    assert result.examples_per_second > 0
    assert result.peak_mib is None


@pytest.mark.tensorflow
@pytest.mark.long
def test_all_of_it_runs_on_parts_of_the_processor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu", "--rehearse-on-cpu", "2"])

    assert main() == 0

    shown = capsys.readouterr().out
    assert shown.startswith("## A rehearsal without GPUs: its numbers mean nothing\n")
    assert shown.count(" examples/s |") == len(plan_cases(2))
