"""Packs of repositories: published once, locked by content, read without a network."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.repositories.chart_servers import serve_registry
from tests.repositories.fault_proxy import Reply, proxied
from trainchart.actions.pack import check_packs
from trainchart.actions.support.repository_access import Address, open_repository
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.archive.read import FILE_LIMIT
from trainchart.cli.app import app
from trainchart.errors import (
    ChecksFailed,
    RepositoryNotFound,
    RepositoryUnauthorized,
    SpecError,
    ToolError,
    TrainchartError,
    VersionConflict,
)
from trainchart.kubernetes_yaml import parse_mapping
from trainchart.packs.archive import pack_archive
from trainchart.packs.pack import Pack, parse_pack
from trainchart.publish.repository import prepare_upload, publish_upload

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
"""
PROJECT = "apiVersion: trainchart/v1\nkind: Project\nextends: [{}]\n"
PACK = "apiVersion: trainchart/v1\nkind: Pack\nname: {}\nversion: 1.0.0\nextends: [{}]\n"


@pytest.fixture
def repository(tmp_path: Path) -> str:
    return f"file://{tmp_path}/repository"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: str) -> Path:
    """A project whose models build on acme 1.0.0 of the repository, which nothing has been published in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "tiny.yaml").write_text(SPEC)
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text("print('trained')\n")
    (folder / "trainchart.yaml").write_text(PROJECT.format(source("acme", repository)))
    monkeypatch.chdir(folder)
    return folder


def source(name: str, repository: str, version: str = "1.0.0") -> str:
    return f'{{repository: "{repository}", name: {name}, version: {version}}}'


def write_pack(folder: Path, name: str, defaults: str, extends: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack.yaml").write_text(PACK.format(name, extends))
    (folder / "defaults.yaml").write_text(defaults)
    return folder


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fail(*arguments: str) -> TrainchartError:
    error = call(*arguments).exception
    assert isinstance(error, TrainchartError)
    return error


def publish(pack: Path, repository: str) -> Result:
    return call("pack", "publish", str(pack), "--to", repository)


def put(pack: Path, to: Address) -> None:
    """Publish a pack whatever it builds on, as those do who mean no good."""
    files = {path.name: path.read_bytes() for path in pack.iterdir()}
    archive = pack_archive(parse_pack(files, pack.name), files)
    with open_repository(to, {"HOME": "/nonexistent"}) as repository:
        publish_upload(repository, prepare_upload(archive.data, created="2026-01-01T00:00:00Z"))


def read_env() -> object:
    return parse_mapping(Path("charts/tiny/values.yaml").read_text())["env"]


def test_a_published_pack_is_locked_and_then_used(project: Path, tmp_path: Path, repository: str) -> None:
    base = write_pack(tmp_path / "base", "base", "env: {A: base, B: base}\n")
    acme = write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n", source("base", repository))
    assert publish(base, repository).exit_code == 0
    error = fail("pack", "publish", str(acme), "--to", repository)
    assert error.hint == "run: trainchart pack update"
    (project / "trainchart.yaml").write_text(PROJECT.format(source("base", repository)))
    call("pack", "update")
    assert publish(acme, repository).exit_code == 0
    (project / "trainchart.yaml").write_text(PROJECT.format(source("acme", repository)))
    error = fail("generate")
    assert error.message == f"{repository}/acme:1.0.0 is not in packs.lock.yaml"
    fetched = json.loads(call("pack", "update", "--format", "json").stdout)
    assert [(pack["name"], pack["isChanged"]) for pack in fetched] == [("acme", True), ("base", False)]
    shutil.rmtree(tmp_path / "repository")
    assert call("generate").exit_code == 0
    assert read_env() == {"A": "acme", "B": "base"}
    explained = call("explain", "tiny", "env.A").stdout.splitlines()
    assert explained[0] == f'env.A = "acme"  # {repository}/acme:1.0.0/defaults.yaml:1:7 (pack acme 1.0.0)'
    assert "up to date" in call("generate").stdout


def test_a_pack_has_one_hash_as_folder_and_as_archive(project: Path, tmp_path: Path, repository: str) -> None:
    acme = write_pack(tmp_path / "project" / "packs" / "acme", "acme", "env: {A: acme}\n")
    publish(acme, repository)
    call("pack", "update")
    call("generate")
    lock = (project / "charts/tiny/trainchart.lock.yaml").read_text()
    archive = tmp_path / "repository" / "acme-1.0.0.tgz"
    for path in ("packs/acme", str(archive)):
        (project / "trainchart.yaml").write_text(PROJECT.format(path))
        assert call("generate", "--check").exit_code == 0, path
    assert "acme@1.0.0" in lock


def test_vendored_packs_need_neither_network_nor_cache(project: Path, tmp_path: Path, repository: str) -> None:
    publish(write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n"), repository)
    call("pack", "update")
    assert call("pack", "vendor").stdout.split()[-1] == "vendor/packs/acme-1.0.0.tgz"
    shutil.rmtree(tmp_path / "repository")
    shutil.rmtree(tmp_path / "cache")
    assert call("generate").exit_code == 0
    assert read_env() == {"A": "acme"}


def test_a_pack_that_is_not_on_this_machine_is_named(project: Path, tmp_path: Path, repository: str) -> None:
    publish(write_pack(tmp_path / "acme", "acme", ""), repository)
    call("pack", "update")
    shutil.rmtree(tmp_path / "cache")
    error = fail("plan", "tiny")
    assert error.message == f"the pack {repository}/acme:1.0.0 is not on this machine"
    assert error.hint == "run: trainchart pack update --locked"
    assert call("pack", "update", "--locked").exit_code == 0
    assert call("plan", "tiny").exit_code == 0


def test_content_that_the_lock_does_not_name_is_refused(project: Path, tmp_path: Path, repository: str) -> None:
    acme = write_pack(tmp_path / "acme", "acme", "env: {A: old}\n")
    publish(acme, repository)
    call("pack", "update")
    call("pack", "vendor")
    shutil.rmtree(tmp_path / "repository")
    write_pack(acme, "acme", "env: {A: new}\n")
    publish(acme, repository)
    error = fail("pack", "update", "--locked")
    assert error.message == f"{repository}/acme:1.0.0 differs from what packs.lock.yaml names"
    shutil.copy(tmp_path / "repository" / "acme-1.0.0.tgz", project / "vendor" / "packs" / "acme-1.0.0.tgz")
    error = fail("generate")
    assert error.message.startswith("vendor/packs/acme-1.0.0.tgz is not the pack that packs.lock.yaml names for ")
    assert "locked" in call("pack", "update").stdout
    assert call("generate").exit_code == 0
    assert read_env() == {"A": "new"}


def test_what_was_changed_after_its_check_is_not_published(
    tmp_path: Path, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n")

    def check(folders: tuple[Path, ...]) -> tuple[Pack, ...]:
        checked = check_packs(folders)
        (pack / "defaults.yaml").write_text("nonsense\n")
        return checked

    monkeypatch.setattr("trainchart.actions.pack.check_packs", check)
    assert "was changed while it was checked" in fail("pack", "publish", str(pack), "--to", repository).message
    assert not (tmp_path / "repository").exists() or not [*(tmp_path / "repository").glob("*.tgz")]


def test_a_pack_that_nobody_could_read_is_not_published(tmp_path: Path, repository: str) -> None:
    pack = write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n")
    (pack / "README.md").write_bytes(b"x" * (FILE_LIMIT + 1))
    assert "larger than Helm's limit" in fail("pack", "publish", str(pack), "--to", repository).message


def test_a_copy_of_a_pack_is_not_written_through_a_link(project: Path, tmp_path: Path, repository: str) -> None:
    assert publish(write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n"), repository).exit_code == 0
    call("pack", "update")
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / "vendor").symlink_to(outside)
    assert f"leads to {outside}" in fail("pack", "vendor").message
    assert not [*outside.iterdir()]


def test_a_published_version_is_immutable(project: Path, tmp_path: Path, repository: str) -> None:
    acme = write_pack(tmp_path / "acme", "acme", "env: {A: old}\n")
    assert "published" in publish(acme, repository).stdout
    assert "was already published with the same content" in publish(acme, repository).stdout
    write_pack(acme, "acme", "env: {A: new}\n")
    error = fail("pack", "publish", str(acme), "--to", repository)
    assert isinstance(error, VersionConflict)
    assert error.hint == f"published versions are immutable: raise version in {acme}/pack.yaml, and publish again"


def test_a_damaged_copy_is_named_with_the_remedy(project: Path, tmp_path: Path, repository: str) -> None:
    publish(write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n"), repository)
    call("pack", "update")
    call("pack", "vendor")
    assert call("generate").exit_code == 0
    Path("vendor/packs/acme-1.0.0.tgz").write_bytes(b"junk")
    error = fail("generate")
    assert error.message.startswith("vendor/packs/acme-1.0.0.tgz cannot be read: ")
    assert error.hint == "remove that file, then run: trainchart pack update --locked"
    Path("vendor/packs/acme-1.0.0.tgz").unlink()
    call("pack", "update", "--locked")
    assert call("generate", "--check").exit_code == 0


def test_what_no_repository_has_is_not_found(project: Path, repository: str) -> None:
    error = fail("pack", "update")
    assert isinstance(error, RepositoryNotFound)
    assert error.message == f"{repository}/acme:1.0.0 does not exist"
    assert not Path("packs.lock.yaml").exists()


def test_a_pack_on_a_path_is_not_published(project: Path, tmp_path: Path, repository: str) -> None:
    write_pack(tmp_path / "base", "base", "")
    acme = write_pack(tmp_path / "acme", "acme", "", "../base")
    error = fail("pack", "publish", str(acme), "--to", repository)
    assert isinstance(error, SpecError)
    assert "builds on the path ../base, which is not in the repository" in error.message
    assert not (tmp_path / "repository").exists()


def test_an_archive_cannot_build_on_a_path(project: Path, tmp_path: Path) -> None:
    chart = b"apiVersion: v2\nname: acme\nversion: 1.0.0\ntype: library\n"
    files = {"Chart.yaml": chart, "pack.yaml": PACK.format("acme", "../../secrets").encode()}
    (project / "acme.tgz").write_bytes(pack_chart(files, BuildInfo()).data)
    (project / "trainchart.yaml").write_text(PROJECT.format("acme.tgz"))
    assert "an archive can build only on packs of repositories" in fail("plan", "tiny").message


def test_a_downloaded_pack_gets_no_password_for_its_servers(
    project: Path, tmp_path: Path, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINCHART_USERNAME", "ada")
    monkeypatch.setenv("TRAINCHART_PASSWORD", "open sesame")
    with serve_registry(tmp_path / "registry") as upstream, proxied(upstream) as foreign:
        foreign.restart(lambda seen: Reply(401, {"WWW-Authenticate": "Basic realm=x"}))
        there = f"oci://{foreign.host}/packs"
        put(write_pack(tmp_path / "acme", "acme", "", source("base", there)), Address(repository))
        assert isinstance(fail("pack", "update", "--plain-http"), RepositoryUnauthorized)
        assert not [seen for seen in foreign.seen if "authorization" in {name.lower() for name in seen.headers}]
        Path("trainchart.yaml").write_text(PROJECT.format(source("base", there)))
        fail("pack", "update", "--plain-http")
        assert [seen for seen in foreign.seen if "authorization" in {name.lower() for name in seen.headers}]


def test_a_published_pack_names_no_folder_of_this_machine(project: Path, tmp_path: Path, repository: str) -> None:
    secret = f"FILE://{tmp_path}/repository"
    with serve_registry(tmp_path / "registry") as host:
        there = f"oci://{host}/packs"
        put(write_pack(tmp_path / "base", "base", ""), Address(repository))
        put(write_pack(tmp_path / "acme", "acme", "", source("base", secret)), Address(there, plain_http=True))
        Path("trainchart.yaml").write_text(PROJECT.format(source("acme", there)))
        assert "is on the machine of its author" in fail("pack", "update", "--plain-http").message


def test_an_archive_that_holds_another_pack_is_refused(project: Path, tmp_path: Path, repository: str) -> None:
    chart = b"apiVersion: v2\nname: acme\nversion: 1.0.0\ntype: application\n"
    files = {"Chart.yaml": chart, "pack.yaml": PACK.format("other", "").encode()}
    (tmp_path / "acme-1.0.0.tgz").write_bytes(pack_chart(files, BuildInfo()).data)
    assert call("publish", str(tmp_path / "acme-1.0.0.tgz"), "--to", repository, "--skip-image-check").exit_code == 0
    assert fail("pack", "update").message == f"{repository}/acme:1.0.0 holds the pack other 1.0.0"


@pytest.mark.parametrize("text", ["packs: 5\n", "kind: Lock\napiVersion: trainchart/v1\npacks: [{source: x}]\n", "["])
def test_a_damaged_lock_is_refused(project: Path, text: str) -> None:
    (project / "packs.lock.yaml").write_text(text)
    error = fail("plan", "tiny")
    assert isinstance(error, SpecError)
    assert error.problems[0].where.startswith("packs.lock.yaml:")


def test_without_packs_of_repositories_nothing_is_updated(project: Path) -> None:
    (project / "trainchart.yaml").write_text(PROJECT.format(""))
    done = call("pack", "update")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "names no pack from a repository" in done.stderr
    assert not (project / "packs.lock.yaml").exists()


def test_a_registry_has_packs_beside_charts(project: Path, tmp_path: Path) -> None:
    acme = write_pack(tmp_path / "acme", "acme", "env: {A: acme}\n")
    with serve_registry(tmp_path / "data") as host:
        address = f"oci://{host}/packs"
        done = call("pack", "publish", str(acme), "--to", address, "--plain-http")
        assert done.stdout.startswith(f"{address}/acme:1.0.0\n")
        (project / "trainchart.yaml").write_text(PROJECT.format(source("acme", address)))
        assert isinstance(fail("pack", "update", "--locked", "--plain-http"), ToolError)
        assert call("pack", "update", "--plain-http").exit_code == 0
        assert call("versions", "acme", "--from", address, "--plain-http").stdout.startswith("1.0.0")
        assert call("generate").exit_code == 0
        assert read_env() == {"A": "acme"}
        charts = f"oci://{host}/charts"
        sent = call("publish", "charts/tiny", "--to", charts, "--plain-http", "--skip-image-check")
        assert sent.exit_code == 0, sent.stderr
        assert call("verify", f"{charts}/tiny:0.1.0", "--plain-http").exit_code == 0
        (project / "trainchart.yaml").write_text(PROJECT.format(""))
        assert isinstance(call("verify", f"{charts}/tiny:0.1.0", "--plain-http").exception, ChecksFailed)


@pytest.fixture
def git_repository(tmp_path: Path) -> Path:
    """A Git repository with the pack acme in a folder, tagged v1."""
    folder = tmp_path / "git"
    write_pack(folder / "packs" / "acme", "acme", "env: {A: one}\n")
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    git(folder, "tag", "v1")
    return folder


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, "-C", folder, *arguments], check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=change")


def git_source(folder: Path, ref: str = "v1", below: str = "packs/acme") -> str:
    return f'{{git: "file://{folder}", ref: {ref}, folder: {below}}}'


def test_a_pack_of_a_git_repository_is_locked_and_then_used(project: Path, git_repository: Path) -> None:
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "main")))
    assert fail("generate").hint == "run: trainchart pack update"
    assert call("pack", "update").exit_code == 0
    write_pack(git_repository / "packs" / "acme", "acme", "env: {A: two}\n")
    commit(git_repository)
    assert call("generate").exit_code == 0
    assert read_env() == {"A": "one"}
    assert "differs from what packs.lock.yaml names" in fail("pack", "update", "--locked").message
    assert call("pack", "update").exit_code == 0
    assert call("pack", "vendor").exit_code == 0
    shutil.rmtree(git_repository)
    assert call("generate").exit_code == 0
    assert read_env() == {"A": "two"}


@pytest.mark.parametrize(
    ("ref", "below", "message"),
    [("v2", "packs/acme", "git cannot fetch v2 of "), ("v1", "packs/other", "has no folder packs/other")],
)
def test_what_a_git_repository_lacks_is_named(
    project: Path, git_repository: Path, ref: str, below: str, message: str
) -> None:
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, ref, below)))
    assert message in fail("pack", "update").message
    assert not (project / "packs.lock.yaml").exists()


def test_a_link_in_a_git_repository_is_refused(project: Path, git_repository: Path) -> None:
    (git_repository / "packs" / "acme" / "README.md").symlink_to("/etc/passwd")
    commit(git_repository)
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "main")))
    assert "'packs/acme/README.md', which is not a file" in fail("pack", "update").message


@pytest.mark.parametrize("files", [1, 200])
def test_a_large_commit_is_not_downloaded_whole(
    project: Path, git_repository: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    for number in range(files):
        (git_repository / f"{number}.bin").write_bytes(random.randbytes(3 * 2**20 // files))
    commit(git_repository)
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "main")))
    monkeypatch.setattr("trainchart.host.git_fetch._DOWNLOAD_LIMIT", 2**20)
    error = fail("pack", "update")
    assert error.message.endswith("the commit is larger than 1 MiB")
    assert error.hint == "keep packs in a repository of their own"


def test_a_downloaded_pack_cannot_name_a_git_repository(
    project: Path, tmp_path: Path, git_repository: Path, repository: str
) -> None:
    put(write_pack(tmp_path / "evil", "acme", "", git_source(git_repository)), Address(repository))
    assert "only the project and its own packs can use Git" in fail("pack", "update").message


@pytest.mark.parametrize(
    "entry",
    [
        "{git: 'ext::sh -c id', ref: v1}",
        "{git: --upload-pack=id, ref: v1}",
        "{git: 'ssh://-oProxyCommand=id/x', ref: v1}",
        "{git: 'https://git.example/a', ref: --upload-pack=id}",
        "{git: 'https://git.example/a', ref: v1, folder: ../..}",
        "{git: 'https://git.example/a'}",
        "{git: 'https://anna:secret@git.example/a', ref: v1}",
        "{git: 'https://token@git.example/a', ref: v1}",
        "{git: 'ssh://anna:secret@git.example/a', ref: v1}",
        "{repository: 'chartmuseum+https://anna:secret@charts.example', name: a, version: 1.0.0}",
        "{repository: 'https://anna:secret@charts.example', name: a, version: 1.0.0}",
        "{repository: 'oci://anna:secret@charts.example', name: a, version: 1.0.0}",
        "{path: packs/a, folder: b}",
    ],
)
def test_an_invalid_git_source_is_refused(project: Path, entry: str) -> None:
    (project / "trainchart.yaml").write_text(PROJECT.format(entry))
    error = fail("pack", "update")
    assert isinstance(error, SpecError)
    assert "secret" not in str(error.problems)


def test_a_git_repository_with_very_many_files_is_refused(project: Path, git_repository: Path) -> None:
    for number in range(1001):
        (git_repository / "packs" / "acme" / f"README-{number}").write_text(str(number))
    commit(git_repository)
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "main")))
    assert "more than 1000 files" in fail("pack", "update").message


def test_a_name_that_is_not_utf_8_is_refused(project: Path, git_repository: Path) -> None:
    Path(os.fsdecode(os.fsencode(git_repository / "packs" / "acme") + b"/README-\xff")).write_text("a")
    commit(git_repository)
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "main")))
    assert "whose name is not UTF-8" in fail("pack", "update").message


def test_a_tree_without_end_is_not_listed(project: Path, git_repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainchart.host.git_fetch._PRINT_LIMIT", 2**20)
    monkeypatch.setattr("trainchart.host.git_fetch._TIMEOUT_SECONDS", 15.0)
    git(git_repository, "checkout", "--quiet", "--orphan=bomb")
    tree = make_tree(
        git_repository, {"pack.yaml": ("100644 blob", hash_of(git_repository, "main:packs/acme/pack.yaml"))}
    )
    for _ in range(40):  # 2**40 files
        tree = make_tree(git_repository, dict.fromkeys("ab", ("040000 tree", tree)))
    made = ("commit-tree", tree, "-m", "change")
    git(git_repository, "update-ref", "refs/heads/bomb", ask_git(git_repository, *made))
    (project / "trainchart.yaml").write_text(PROJECT.format(git_source(git_repository, "bomb", "a")))
    error = fail("pack", "update")
    assert error.message.endswith("the list of its files is larger than 1 MiB")


def ask_git(folder: Path, *arguments: str, text: str = "") -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ["git", *identity, "-C", folder, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout.strip()


def hash_of(folder: Path, name: str) -> str:
    return ask_git(folder, "rev-parse", name)


def make_tree(folder: Path, entries: dict[str, tuple[str, str]]) -> str:
    lines = (f"{kind} {object_name}\t{name}\n" for name, (kind, object_name) in entries.items())
    return ask_git(folder, "mktree", text="".join(lines))
