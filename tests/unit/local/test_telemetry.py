"""What a program puts in the place of its progress file does not hold up a local run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainchart.local.io.telemetry import read_progress
from trainchart_runtime.contract import PROGRESS_FILE_NAME


def read_from(folder: Path) -> Any:
    runner: Any = SimpleNamespace(plan=SimpleNamespace(state_folder=str(folder)))
    return read_progress(runner).step


@pytest.mark.timeout(20)
def test_a_pipe_or_device_as_progress_file_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / PROGRESS_FILE_NAME
    file.write_text('{"step": 3}')
    assert read_from(tmp_path) == 3
    file.unlink()
    os.mkfifo(file)
    assert read_from(tmp_path) is None
    file.unlink()
    file.symlink_to("/dev/zero")
    assert read_from(tmp_path) is None
