"""A reader that goes away (`trainchart … | head`) ends a command as it ends other tools, with 141 and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PRINTS = (["--version"], ["--help"], ["run", "--help"], ["rules"], ["schema"])
COMPLAINS = (["status", "nope"], ["nope"], ["rules", "nope", "--format", "json"])


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """The writing end of a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("is_buffered", [True, False])
@pytest.mark.parametrize("arguments", PRINTS, ids=" ".join)
def test_closed_stdout_ends_a_command_as_sigpipe_does(
    arguments: list[str], is_buffered: bool, closed_pipe: int
) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    argv = [sys.executable, "-m", "trainchart", *arguments]
    done = subprocess.run(argv, stdout=closed_pipe, stderr=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", COMPLAINS, ids=" ".join)
def test_closed_stderr_ends_a_command_as_sigpipe_does(arguments: list[str], closed_pipe: int) -> None:
    argv = [sys.executable, "-m", "trainchart", *arguments]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=closed_pipe)
    assert (done.returncode, done.stdout) == (141, b"")


@pytest.mark.parametrize(("arguments", "code"), [("--version", 0), ("status nope", 7)])
def test_a_command_works_without_stdout_and_stderr(arguments: str, code: int) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m trainchart {arguments} >&- 2>&-"], timeout=60)
    assert done.returncode == code


def test_modules_of_the_current_folder_are_not_run(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("open('ran', 'w')\n")
    done = subprocess.run([sys.executable, "-m", "trainchart", "rules"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
