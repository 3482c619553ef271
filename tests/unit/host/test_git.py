"""The commit of a folder, from real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trainchart.host.git import read_commit


def git(folder: Path, *arguments: str, epoch: int = 1767225600) -> str:
    identity = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com"}
    identity |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com"}
    dates = {"GIT_AUTHOR_DATE": f"{epoch} +0000", "GIT_COMMITTER_DATE": f"{epoch} +0000"}
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, env={**os.environ, **identity, **dates}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_last_commit_of_the_folder_not_of_the_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    chart = tmp_path / "charts" / "mnist"
    chart.mkdir(parents=True)
    assert read_commit(chart) is None
    (chart / "Chart.yaml").write_text("a")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Add the chart", epoch=1767225600)
    first = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "README").write_text("b")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Write a page", epoch=1767225700)

    found = read_commit(chart)
    assert found is not None
    assert (found.commit, found.committed_epoch, found.is_dirty) == (first, 1767225600, False)
    (chart / "Chart.yaml").write_text("changed")
    dirty = read_commit(chart)
    assert dirty is not None
    assert dirty.is_dirty


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert read_commit(tmp_path) is None
