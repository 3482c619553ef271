"""Completion: it installs into the user's shell, and it knows the commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def trainchart(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from trainchart.cli.app import main; sys.argv[0] = 'trainchart'; main()"
    return subprocess.run(
        ["bash", "-c", '"$@"; exit $?', "bash", sys.executable, "-c", program, *arguments],
        env={**os.environ, "HOME": str(home), "SHELL": "/bin/bash", **environment},
        capture_output=True,
        text=True,
    )


def test_it_installs_into_the_shell_it_is_called_from(tmp_path: Path) -> None:
    done = trainchart(tmp_path, "--install-completion")
    assert done.returncode == 0, done.stderr
    (installed,) = (tmp_path / ".bash_completions").iterdir()
    assert str(installed) in (tmp_path / ".bashrc").read_text()
    assert "complete " in installed.read_text()


def test_it_is_shown(tmp_path: Path) -> None:
    assert "_TRAINCHART_COMPLETE=complete_bash" in trainchart(tmp_path, "--show-completion").stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "expected"), [("trainchart in", {"init"}), ("trainchart init --str", {"--strategy"})]
)
def test_it_completes(tmp_path: Path, typed: str, expected: set[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = trainchart(tmp_path, _TRAINCHART_COMPLETE="complete_bash", **words)
    assert set(done.stdout.split()) == expected
