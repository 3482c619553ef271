"""An error of this machine is said as one: it is neither a bug nor a wrong package."""

from __future__ import annotations

import errno
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from trainchart.cli.app import describe_exhaustion

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RecursionError("maximum recursion depth exceeded"), "is nested too deeply"),
        (RuntimeError("Symlink loop from '/a/b'"), "symlink loop from '/a/b'"),
    ],
)
def test_what_no_input_should_be_is_no_bug_of_ours(error: Exception, message: str) -> None:
    described = describe_exhaustion(error)
    assert described is not None
    assert message in described.message
    assert described.hint


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "this machine has run out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "this machine has run out of memory"),
        (OSError(errno.EMFILE, "Too many open files"), "too many files are open"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "cannot start more processes or threads"),
        (RuntimeError("can't start new thread"), "cannot start more processes or threads"),
    ],
)
def test_exhaustion_is_named_with_the_limit_to_raise(error: Exception, message: str) -> None:
    described = describe_exhaustion(error)
    assert described is not None
    assert message in described.message
    assert "ulimit" in described.hint


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError(errno.EIO, "Input/output error")])
def test_other_errors_are_left_alone(error: Exception) -> None:
    assert describe_exhaustion(error) is None


def test_too_few_open_files_are_one_clear_error(tmp_path: Path) -> None:
    program = "from resource import *; from trainchart.cli.app import main; setrlimit(RLIMIT_NOFILE, (4, 4)); main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "generate", str(ROOT / "models" / "mnist.yaml"), "-o", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7
    assert "too many" in done.stderr.lower()
    assert "Traceback" not in done.stderr


def test_without_a_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system that is read-only."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc"])
    with pytest.raises(FileNotFoundError) as caught, tempfile.TemporaryDirectory():
        pass
    described = describe_exhaustion(caught.value)
    assert described is not None
    assert described.message == "there is no writable folder for temporary files: /proc"
    assert "TMPDIR=FOLDER" in described.hint
