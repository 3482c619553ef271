"""The commit of a folder, from real repositories."""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.host import git as own_git
from trainchart.host.git import CommitInfo, describe_commit, find_committed, read_commit
from trainchart.host.trees import remove_tree


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


def test_new_files_count_whatever_the_user_has_git_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, chart = tmp_path / "home", tmp_path / "chart"
    home.mkdir()
    chart.mkdir()
    make_repository(chart)
    monkeypatch.setenv("HOME", str(home))
    (home / ".gitconfig").write_text("[status]\n\tshowUntrackedFiles = no\n")
    (chart / "new.yaml").write_text("in no commit")
    found = read_commit(chart)
    assert found is not None
    assert found.is_dirty


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commit(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert read_commit(tmp_path) is None


def commit_all(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "Add the chart")
    return git(folder, "rev-parse", "HEAD")


def make_bare_repository(chart: Path, program: Path) -> None:
    """A repository in folders that any archive, and any commit of an outer repository, can hold."""
    git(chart, "init", "-q", "--bare")
    settings = {"core.bare": "false", "core.worktree": ".", "core.fsmonitor": str(program)}
    for key, value in settings.items():
        git(chart, "config", "--file", "config", key, value)
    (chart / "Chart.yaml").write_text("a")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "core.fsmonitor=false")
    git(chart, *identity, "add", "Chart.yaml")
    git(chart, *identity, "commit", "-q", "-m", "Add")


def make_fsmonitor(chart: Path, program: Path) -> None:
    make_repository(chart)
    git(chart, "config", "core.fsmonitor", str(program))


def make_filter(chart: Path, program: Path) -> None:
    make_repository(chart)
    (chart / ".git" / "info").mkdir(exist_ok=True)
    (chart / ".git" / "info" / "attributes").write_text("* filter=x\n")
    for kind in ("clean", "process"):
        git(chart, "config", f"filter.x.{kind}", str(program))
    (chart / "Chart.yaml").write_text("b")


def make_hook(chart: Path, program: Path) -> None:
    make_repository(chart)
    (chart / ".git" / "hooks").mkdir(exist_ok=True)
    (chart / ".git" / "hooks" / "post-index-change").symlink_to(program)
    os.utime(chart / "Chart.yaml", (1, 1))


def make_partial_clone(chart: Path, program: Path) -> None:
    """Objects are missing, and a remote helper says where to have them from."""
    make_repository(chart)
    tree = git(chart, "rev-parse", "HEAD^{tree}")
    (chart / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    settings = {"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin"}
    settings |= {"remote.origin.promisor": "true", "remote.origin.url": f"ext::{program}", "protocol.allow": "always"}
    for key, value in settings.items():
        git(chart, "config", key, value)


def make_submodule(chart: Path, program: Path) -> None:
    inner = chart / "inner"
    inner.mkdir(parents=True)
    make_repository(inner)
    make_repository(chart)
    git(inner, "config", "core.fsmonitor", str(program))
    os.utime(inner / "Chart.yaml", (1, 1))


def make_repository(chart: Path) -> None:
    git(chart, "init", "-q")
    (chart / "Chart.yaml").write_text("a")
    commit_all(chart)


ATTACKS = (make_bare_repository, make_fsmonitor, make_filter, make_hook, make_partial_clone, make_submodule)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__.removeprefix("make_"))
def test_no_program_of_a_repository_is_run(attack: Callable[[Path, Path], None], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    witness, program = outside / "witness", outside / "program"
    program.write_text(f"#!/bin/sh\ntouch {witness}\nexit 1\n")
    program.chmod(0o755)
    chart = tmp_path / "chart"
    chart.mkdir()
    attack(chart, program)
    witness.unlink(missing_ok=True)

    read_commit(chart)
    describe_commit(chart)
    assert not witness.exists()
    for plain in (("log", "-1", "--", "."), ("status", "--porcelain", "--", ".")):
        subprocess.run(["git", "-C", str(chart), *plain], capture_output=True)
    assert witness.exists(), "git itself does not run it: the attack proves nothing"


@pytest.mark.parametrize("setting", ["filter.x.clean", "filter.x.process", "core.fsmonitor"])
def test_no_program_of_the_user_runs_files_of_a_folder(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nbstripout --install --global` has Python import a module from wherever git works."""
    home, chart, witness = tmp_path / "home", tmp_path / "chart", tmp_path / "witness"
    home.mkdir()
    chart.mkdir()
    make_repository(chart)
    (chart / "strip.py").write_text(f"open({str(witness)!r}, 'w')")
    (chart / ".gitattributes").write_text("[attr]data filter=x\n* filter=x\n*.yaml data\n")
    (chart / "Chart.yaml").write_text("b")
    monkeypatch.setenv("HOME", str(home))
    git(chart, "config", "--global", setting, f"{sys.executable} -m strip")

    found = read_commit(chart)
    assert found is not None and found.is_dirty
    assert not witness.exists()
    subprocess.run(["git", "-C", str(chart), "status", "--porcelain", "--", "."], capture_output=True)
    assert witness.exists(), "git itself does not run it: the attack proves nothing"


def test_no_setting_hides_in_the_value_of_another(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    chart.mkdir()
    make_repository(chart)
    program = chart / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/witness\nexit 1\n")
    program.chmod(0o755)
    with (chart / ".git/config").open("a") as config:
        config.write('[core]\n\teol = "lf\\n[core]fsmonitor=./program.sh# x"\n')
    found = read_commit(chart)
    assert found is not None
    assert found.is_dirty
    assert not (tmp_path / "witness").exists()


def test_a_worktree_and_tags_are_read_without_the_configuration(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    make_repository(first)
    (first / ".gitignore").write_text("*.log\n")
    commit = commit_all(first)
    git(first, "tag", "v1.2.3")
    git(first, "pack-refs", "--all")
    second = tmp_path / "second"
    git(first, "worktree", "add", "-q", str(second))
    (second / "train.log").write_text("ignored")
    found = read_commit(second)
    assert found is not None
    assert (found.commit, found.is_dirty) == (commit, False)
    assert describe_commit(second) == "v1.2.3"
    (second / "new.txt").write_text("not in any commit")
    assert read_commit(second) == CommitInfo(commit, found.committed_epoch, is_dirty=True)


def test_a_damaged_index_counts_as_changed(tmp_path: Path) -> None:
    make_repository(tmp_path)
    (tmp_path / ".git" / "index").write_bytes(b"no index")
    found = read_commit(tmp_path)
    assert found is not None
    assert found.is_dirty


def test_contents_that_are_too_large_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "README.md").write_bytes(bytes(200))
    commit_all(tmp_path)
    wanted = {"README.md": hashlib.sha256(bytes(200)).hexdigest()}
    assert find_committed(tmp_path, wanted) == {"README.md": bytes(200)}
    monkeypatch.setattr(own_git, "READ_LIMIT", 199)
    assert find_committed(tmp_path, wanted) == {}


def test_a_commit_that_unpacks_to_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_git, "_MEMORY_LIMIT", 32 * 2**20, raising=False)
    make_repository(tmp_path)
    assert read_commit(tmp_path) is not None
    message = tmp_path / "message"
    message.write_bytes(b"a" * 40 * 2**20)
    git(tmp_path, "-c", "core.compression=1", "commit", "--quiet", "--allow-empty", "--file", str(message))
    assert read_commit(tmp_path) is None


def put_git_in_the_way(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, does: str) -> None:
    """Put a git on PATH that does something else for one of its commands."""
    real = shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\ncase " $* " in *" {command} "*) {does} ;; esac\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_long_list_of_changes_is_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = tmp_path / "chart"
    chart.mkdir()
    make_repository(chart)
    put_git_in_the_way(tmp_path / "bin", monkeypatch, "status", "yes '?? data' | head -c 64M; exit 0")
    tracemalloc.start()
    try:
        found = read_commit(chart)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert found.is_dirty
    assert peak < 2**23


@pytest.mark.parametrize("command", ["config", "cat-file", "rev-list", "log"])
def test_no_answer_of_git_fills_the_memory(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path)
    monkeypatch.setattr(own_git, "READ_LIMIT", 2**20)
    put_git_in_the_way(tmp_path / "bin", monkeypatch, command, "head -c 64M /dev/zero | tee /dev/stderr; exit 0")
    wanted = {"Chart.yaml": hashlib.sha256(b"a").hexdigest()}
    tracemalloc.start()
    try:
        read_commit(tmp_path)
        find_committed(tmp_path, wanted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**24


def test_git_that_takes_too_long_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path)
    monkeypatch.setattr(own_git, "_TIMEOUT_SECONDS", 1.0)
    asked = tmp_path / "asked"
    put_git_in_the_way(tmp_path / "bin", monkeypatch, "cat-file", f"echo >>{asked}; sleep 4 & exec sleep 4")
    began = time.monotonic()
    assert find_committed(tmp_path, dict.fromkeys(("Chart.yaml", "./Chart.yaml"), "0" * 64)) == {}
    assert time.monotonic() - began < 3
    assert asked.read_text() == "\n"


GIT_FILES = """
.git .git/HEAD .git/index .git/config .git/config.worktree .git/packed-refs .git/refs/heads/main .git/refs/tags/v1
.git/shallow .git/commondir .git/info/exclude .git/info/grafts .git/info/sparse-checkout .git/objects/info/alternates
.git/objects/info/commit-graph .git/objects/pack/pack-1.idx .git/objects/ab/cd .gitignore .gitattributes .gitmodules
charts/.gitignore charts/mnist/.gitattributes charts/mnist/templates/.gitignore
"""


@pytest.mark.parametrize("name", GIT_FILES.split())
def test_pipes_in_place_of_files_that_git_reads_are_refused(name: str, tmp_path: Path) -> None:
    chart = tmp_path / "charts/mnist"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("a")
    make_repository(tmp_path)
    remove_tree(tmp_path / name)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    began = time.monotonic()
    for ask in (read_commit, describe_commit):
        with pytest.raises(ToolError, match=f"{re.escape(name)} is neither a file nor a folder"):
            ask(chart)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(
    "name", [".git", ".git/HEAD", ".git/config", ".git/refs/heads/main", ".git/hooks/pipe", "../sub.git/HEAD"]
)
def test_pipes_in_a_repository_within_the_folder_are_refused(name: str, tmp_path: Path) -> None:
    chart, sub = tmp_path / "chart", tmp_path / "chart" / "sub"
    sub.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("a")
    make_repository(chart)
    git(sub, "init", "-qb", "main")
    (sub / "x").write_text("x")
    if name.startswith(".."):
        (sub / ".git").rename(chart / "sub.git")
        (sub / ".git").write_text("gitdir: ../sub.git\n")
    remove_tree(sub / name)
    os.mkfifo(sub / name)
    with pytest.raises(ToolError, match="is neither a file nor a folder"):
        read_commit(chart)


def test_repositories_within_the_folder_are_fine(tmp_path: Path) -> None:
    chart, sub = tmp_path / "chart", tmp_path / "chart" / "sub"
    sub.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("a")
    make_repository(chart)
    (sub / "x").write_text("x")
    make_repository(sub)
    found = read_commit(chart)
    assert found is not None
    assert found.is_dirty


def test_pipes_of_a_worktree_and_behind_links_are_refused(tmp_path: Path) -> None:
    first, second, pipe = tmp_path / "first", tmp_path / "second", tmp_path / "pipe"
    first.mkdir()
    make_repository(first)
    git(first, "worktree", "add", "-q", str(second))
    os.mkfifo(pipe)
    for place in (first / ".git/worktrees/second/HEAD", first / ".git/packed-refs"):
        kept = place.read_bytes() if place.exists() else b""
        place.unlink(missing_ok=True)
        place.symlink_to(pipe)
        with pytest.raises(ToolError, match="neither a file nor a folder"):
            read_commit(second)
        place.unlink()
        place.write_bytes(kept)
    assert read_commit(second) is not None


@pytest.mark.parametrize(
    "key", ["include.path", "includeIf.gitdir:**.path", "core.excludesFile", "core.attributesFile"]
)
def test_no_file_that_a_git_configuration_names_is_read(key: str, tmp_path: Path) -> None:
    chart, pipe = tmp_path / "chart", tmp_path / "pipe"
    chart.mkdir()
    make_repository(chart)
    commit = git(chart, "rev-parse", "HEAD")
    git(chart, "config", key, str(pipe))
    os.mkfifo(pipe)
    began = time.monotonic()
    found = read_commit(chart)
    assert (found and found.commit, describe_commit(chart)) == (commit, commit[:7])
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("name", ["info/alternates", "pack/pack-1.idx", "ab/cd"])
@pytest.mark.parametrize("quoting", ["{}", '"{}"', '"\\057{}"', "../../../outer"])
def test_pipes_in_borrowed_objects_are_refused(quoting: str, name: str, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    chart.mkdir()
    make_repository(chart)
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    for place, lends in ((chart / ".git/objects", quoting.format(outer)), (outer, str(inner))):
        (place / "info").mkdir(parents=True, exist_ok=True)
        (place / "info" / "alternates").write_text(f"# lent\n{lends}\n")
    (inner / name).parent.mkdir(parents=True)
    os.mkfifo(inner / name)
    began = time.monotonic()
    with pytest.raises(ToolError, match=f"{name} is neither a file nor a folder"):
        read_commit(chart)
    assert time.monotonic() - began < 5


def test_a_pipe_in_place_of_a_mailmap_is_not_read(tmp_path: Path) -> None:
    make_repository(tmp_path)
    os.mkfifo(tmp_path / ".mailmap")
    began = time.monotonic()
    assert read_commit(tmp_path) is not None
    assert time.monotonic() - began < 5


def test_other_pipes_sockets_and_links_of_a_repository_are_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path)
    os.mkfifo(tmp_path / "data")
    (tmp_path / ".git/objects/loop").symlink_to(tmp_path / ".git")
    (tmp_path / ".git/gone").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path / ".git")  # the path of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind("fsmonitor--daemon.ipc")
    assert read_commit(tmp_path) is not None


def test_git_is_asked_with_many_files_open(tmp_path: Path) -> None:
    make_repository(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with ExitStack() as opened:
            for _ in range(1100):
                opened.enter_context((tmp_path / "Chart.yaml").open())
            assert read_commit(tmp_path) is not None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("content", [b"gitdir: \xff\n", b"gitdir: a\0b\n", b"x" * 10**6, b"", b"gitdir: /\n"])
def test_a_damaged_pointer_to_a_repository_leads_to_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert read_commit(tmp_path) is None


def test_pipes_are_found_behind_a_name_in_any_encoding(tmp_path: Path) -> None:
    make_repository(tmp_path)
    moved = tmp_path / os.fsdecode(b"\xff")
    (tmp_path / ".git").rename(moved)
    (tmp_path / ".git").write_bytes(b"gitdir: \xff\n")
    read_commit(tmp_path)
    (moved / "packed-refs").unlink(missing_ok=True)
    os.mkfifo(moved / "packed-refs")
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        read_commit(tmp_path)


@pytest.mark.parametrize("kind", ["DATA", "FSIZE"])
def test_a_lower_limit_of_the_user_stays(kind: str) -> None:
    program = f"""
import resource
from trainchart.host.git_fetch import _limit
resource.setrlimit(resource.RLIMIT_{kind}, (2**29, 2**29))
_limit(2**30)
print(resource.getrlimit(resource.RLIMIT_{kind}))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"({2**29}, {2**29})\n"
