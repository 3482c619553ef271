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
    for without in ({tmp_path / "README"}, {chart / "other.yaml"}, {chart / "*"}):
        assert read_commit(chart, without=without) == dirty
    passed_over = read_commit(chart, without={chart / "Chart.yaml", tmp_path / "README"})
    assert passed_over == found


def test_whatever_the_users_git_is_configured_to_show(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "spec.yaml").write_text("a")
    git(tmp_path, "add", ".")
    # Stands in for gpg, both where it signs and where it verifies.
    program = tmp_path.with_name(f"{tmp_path.name}-gpg")
    program.write_text(
        "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho 'gpg: Good signature' >&2\n"
        "echo '-----BEGIN PGP SIGNATURE-----'\necho '-----END PGP SIGNATURE-----'\n"
    )
    program.chmod(0o755)
    git(tmp_path, "-c", f"gpg.program={program}", "commit", "-q", "-S", "-m", "Add a spec")
    for key, value in (("gpg.program", str(program)), ("log.showSignature", "true"), ("core.quotePath", "false")):
        git(tmp_path, "config", key, value)
    assert "Good signature" in git(tmp_path, "log", "-1")
    (tmp_path / os.fsdecode(b"\xff")).write_text("in the encoding of another time")
    git(tmp_path, "checkout", "-q", "--detach")
    found = read_commit(tmp_path)
    assert found is not None
    assert (found.commit, found.is_dirty) == (git(tmp_path, "rev-parse", "HEAD"), True)


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert read_commit(tmp_path) is None
