"""`trainchart package` as a user meets it: real helm programs take the archive, exit codes and output."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.command_line import call
from trainchart.archive.lock import Source, build_lock, dump_lock
from trainchart.host.files import read_tree


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return call(Path.cwd(), "package", *arguments, environment={**os.environ, **environment})


@pytest.fixture
def locked_chart(plain_chart: Path) -> Path:
    source = Source("models/plain.yaml", "0" * 64)
    lock = build_lock(generator="0.1.0", spec=source, family=source, files=read_tree(plain_chart))
    (plain_chart / "trainchart.lock.yaml").write_text(dump_lock(lock))
    return plain_chart


@pytest.mark.helm
@pytest.mark.parametrize("major", [3, 4])
def test_real_helm_takes_the_archive(
    locked_chart: Path, tmp_path: Path, major: int, request: pytest.FixtureRequest
) -> None:
    helm = request.getfixturevalue(f"helm{major}")
    done = run(locked_chart, "-d", tmp_path / "dist", SOURCE_DATE_EPOCH="1767225600")
    assert (done.returncode, done.stderr) == (0, "")
    archive = tmp_path / "dist" / "plain-1.2.3.tgz"
    assert done.stdout.splitlines()[0] == str(archive)

    def helm_says(*arguments: str) -> str:
        return subprocess.run([helm, *arguments], capture_output=True, text=True, check=True).stdout

    shown = helm_says("show", "chart", str(archive))
    assert 'trainchart/created: "2026-01-01T00:00:00Z"' in shown
    assert "trainchart/content-sha256:" in shown
    assert helm_says("template", "exp", str(archive)) == helm_says("template", "exp", str(locked_chart))


def test_packing_again_gives_the_same_bytes(locked_chart: Path, tmp_path: Path) -> None:
    first = run(locked_chart, "-d", tmp_path, "--format", "json")
    archive = tmp_path / "plain-1.2.3.tgz"
    data = archive.read_bytes()
    for path in locked_chart.rglob("*"):
        os.utime(path, (1, 1))
    archive.unlink()
    second = run(locked_chart, "-d", tmp_path, "--format", "json")
    assert archive.read_bytes() == data
    assert first.stdout == second.stdout
    told = json.loads(first.stdout)
    assert told["path"] == str(archive)
    assert (told["name"], told["version"], told["bytes"]) == ("plain", "1.2.3", len(data))

    again = run(archive, "-d", tmp_path / "again", "--format", "json")
    assert json.loads(again.stdout)["identity"] == told["identity"]


def test_archive_ignores_the_commit_of_the_repository_around_it(plain_chart: Path, tmp_path: Path) -> None:
    identity = {f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def commit(folder: Path) -> None:
        for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add it")):
            subprocess.run(["git", "-C", folder, *arguments], env={**os.environ, **identity}, check=True)

    commit(plain_chart)
    repository = tmp_path / "repository"
    run(plain_chart, "-d", repository)
    with tarfile.open(repository / "plain-1.2.3.tgz") as tar:
        assert any(b"trainchart/git-commit" in line for line in tar.extractfile("plain/Chart.yaml") or ())
    commit(repository)
    run(repository / "plain-1.2.3.tgz", "-d", tmp_path / "again")
    with tarfile.open(tmp_path / "again" / "plain-1.2.3.tgz") as tar:
        assert not any(b"trainchart/git-commit" in line for line in tar.extractfile("plain/Chart.yaml") or ())


def test_drift_is_refused_unless_allowed(locked_chart: Path, tmp_path: Path) -> None:
    (locked_chart / "values.yaml").write_text((locked_chart / "values.yaml").read_text() + "# mine\n")
    refused = run(locked_chart, "-d", tmp_path / "dist")
    assert refused.returncode == 6
    assert "values.yaml: changed since it was generated" in refused.stderr
    assert not (tmp_path / "dist").exists()
    assert run(locked_chart, "-d", tmp_path / "dist", "--allow-drift").returncode == 0


def _replace_by_pipe(chart: Path) -> None:
    (chart / "Chart.yaml").unlink()
    os.mkfifo(chart / "Chart.yaml")


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (lambda chart: (chart / "templates" / "x.yaml").write_text("{{ if }}"), 5, "missing value for if"),
        (lambda chart: (chart / "Chart.yaml").write_text("name: [\n"), 7, "Chart.yaml cannot be read"),
        (lambda chart: (chart / "Chart.yaml").unlink(), 7, "it has no Chart.yaml"),
        (_replace_by_pipe, 7, "Chart.yaml is neither a file nor a folder"),
    ],
)
def test_a_chart_that_does_not_load_is_refused(
    plain_chart: Path, tmp_path: Path, damage: object, code: int, message: str
) -> None:
    assert callable(damage)
    damage(plain_chart)
    done = run(plain_chart, "-d", tmp_path / "dist")
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dist").exists()


def test_a_destination_that_cannot_be_written(plain_chart: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(plain_chart, "-d", tmp_path / "file")
    assert done.returncode == 7
    assert "cannot write" in done.stderr
    bad_epoch = run(plain_chart, "-d", tmp_path, SOURCE_DATE_EPOCH="yesterday")
    assert bad_epoch.returncode == 7
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in bad_epoch.stderr


def test_a_version_never_gets_another_content(plain_chart: Path, tmp_path: Path) -> None:
    first = run(plain_chart, "-d", tmp_path / "dist")
    assert first.returncode == 0, first.stderr
    assert run(plain_chart, "-d", tmp_path / "dist").returncode == 0
    (archive,) = (tmp_path / "dist").iterdir()
    before = archive.read_bytes()
    (plain_chart / "values.yaml").write_text((plain_chart / "values.yaml").read_text() + "\n# changed\n")
    again = run(plain_chart, "-d", tmp_path / "dist")
    assert again.returncode == 7
    assert "with different content" in again.stderr
    assert archive.read_bytes() == before


def test_chart_with_a_key_is_packed_only_with_a_waiver(plain_chart: Path, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    (plain_chart / "templates" / "secret.yaml").write_text("{{/* named as what it makes */}}\n")
    (plain_chart / "files").mkdir()
    (plain_chart / "files" / "Kaggle.JSON").write_text("{}")
    values = (plain_chart / "values.yaml").read_text()
    (plain_chart / "values.yaml").write_text(f"# a\n# {token}\n{values}")
    done = run(plain_chart, "-d", tmp_path / "dist", "--format", "json")
    assert done.returncode == 6, done.stderr
    assert token not in done.stderr
    why = "which everyone who pulls the chart can read"
    problems = {problem["where"]: problem["message"] for problem in json.loads(done.stderr)["problems"]}
    assert problems == {
        "files/Kaggle.JSON": f"files of this name hold a token of a machine learning service, {why}",
        "values.yaml:2": f"holds a GitHub token, {why}",
    }
    (plain_chart / ".helmignore").write_text("files\n")
    (plain_chart / ".trainchart-check.yaml").write_text(
        "waivers:\n  - {rule: secrets-absent, path: values.yaml, reason: the token of a test}\n"
    )
    done = run(plain_chart, "-d", tmp_path / "dist", "--format", "json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("env: {DB_PASSWORD: hunter2hunter2}\nenv: {}\n", "has the key env twice, of which only the last was searched"),
        ("x: ! y\nenv: {DB_PASSWORD: hunter2hunter2}\n", "was searched for passwords only by lines: a lone !"),
    ],
)
def test_values_that_cannot_be_searched_whole_are_not_packed(
    plain_chart: Path, tmp_path: Path, text: str, problem: str
) -> None:
    (plain_chart / "values.yaml").write_text(text)
    done = run(plain_chart, "-d", tmp_path / "dist")
    assert done.returncode == 6, done.stderr
    assert problem in " ".join(done.stderr.split())
    assert not list((tmp_path / "dist").glob("*"))
