"""What git knows about a folder, for the build annotations of a chart archive and the labels of an image.

A folder may come from anyone, with a repository in it whose configuration names programs (`core.fsmonitor`, filters,
hooks, signature checkers, remote helpers). So git never reads that configuration: it works in a git directory of our
own, which borrows objects, references and the index of the real one. Bare repositories are not looked for at all.
"""

from __future__ import annotations

import hashlib
import os
import resource
import select
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainchart.host.files import READ_LIMIT
from trainchart.host.git_pipes import find_git_directory, read_small_file, refuse_git_pipes

_TIMEOUT_SECONDS = 30.0
_PIECE = 2**16
"""Bytes of what git prints that are read at once."""
_SEARCH_SECONDS = 30.0
"""For the committed content of all files together."""
_MEMORY_LIMIT = 2 * 1024**3
"""Bytes that git may need: of a few packed ones, it makes gigabytes."""
_COMMITS_SEARCHED = 20
"""Of one file, for a content of it."""
_BORROWED = ("refs", "reftable", "packed-refs", "shallow", "info/exclude")
"""What a git directory of our own takes from the real one beside objects and index: data that names no program."""
_SETTINGS = r"^(core\.(filemode|symlinks|ignorecase|autocrlf|eol)|extensions\.(objectformat|refstorage))$"
"""How a repository is stored, and settings without which unchanged files look changed. None can name a program."""
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",  # status writes no index, and so runs no hook after it
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched, also for objects that a partial clone lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class CommitInfo:
    """The last commit that changed a folder, and whether its files have changed since."""

    commit: str
    committed_epoch: int
    is_dirty: bool


@dataclass(frozen=True)
class _Repository:
    """A git directory of our own for the repository that a folder lies in."""

    shadow: Path
    work_tree: Path
    environment: Mapping[str, str]

    def run(self, folder: Path, *arguments: str) -> str | None:
        """Return what git prints in `folder`; None where it fails."""
        return _as_text(self.read(folder, *arguments))

    def read(self, folder: Path, *arguments: str, limit: int | None = None) -> bytes | None:
        """Return the bytes that git prints in `folder`; None where it fails, or prints more than `limit`."""
        place = ("--git-dir", str(self.shadow), "--work-tree", str(self.work_tree))
        return _ask_git(("-C", str(folder), *place, *arguments), self.environment, limit)


class _TimedOutError(Exception):
    """Git took too long. It is not asked again: each further question may take as long."""


def read_commit(folder: Path, *, without: Iterable[Path] = ()) -> CommitInfo | None:
    """Return the last commit that touched `folder`; None where git is missing, knows no commit of it, or hangs.

    It is not dirty for changes of the files `without`, given by absolute path. It is dirty where git cannot tell in
    time whether files have changed.
    """
    with suppress(_TimedOutError), _open_repository(folder) as repository:
        if repository is None:
            return None
        # The last commit of the folder, not of the repository: an unrelated commit must not change the archive.
        # A user's log.showSignature would put what gpg says before it; a .mailmap may be a pipe.
        shown = repository.run(folder, "log", "-1", "--no-show-signature", "--no-mailmap", "--format=%H %ct", "--", ".")
        commit, _, epoch = (shown or "").partition(" ")
        if not (epoch.isascii() and epoch.isdecimal()):  # a commit may state no time
            return None
        passed_over = (os.path.relpath(path, folder.resolve()) for path in sorted(without))
        excluded = (f":(exclude,literal){path}" for path in passed_over if not path.startswith(os.pardir))
        # A submodule has a configuration of its own, which git would read to look inside.
        status = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all", "--", ".", *excluded)
        try:
            # The first change says it: the list of all may be larger than the memory.
            is_clean = repository.read(folder, *status, limit=0) == b""
        except _TimedOutError:
            is_clean = False
        return CommitInfo(commit, int(epoch), is_dirty=not is_clean)
    return None


def describe_commit(folder: Path) -> str:
    """Return the nearest tag and the commits since, or the commit where there is no tag; empty without git."""
    with suppress(_TimedOutError), _open_repository(folder) as repository:
        return (repository.run(folder, "describe", "--always", "--tags") if repository else None) or ""
    return ""


def find_committed(folder: Path, wanted: Mapping[str, str]) -> dict[str, bytes]:
    """Return the content of each path in `folder` whose sha256 is `wanted`, as far as its last commits hold it."""
    found: dict[str, bytes] = {}
    end = time.monotonic() + _SEARCH_SECONDS
    with suppress(_TimedOutError), _open_repository(folder) as repository:
        for path, sha256 in wanted.items() if repository else ():
            assert repository is not None
            if time.monotonic() > end:
                break
            content = _find_content(repository, folder, path, sha256)
            if content is not None:
                found[path] = content
    return found


def _find_content(repository: _Repository, folder: Path, path: str, sha256: str) -> bytes | None:
    commits = repository.run(folder, "rev-list", f"--max-count={_COMMITS_SEARCHED}", "HEAD", "--", path)
    for commit in (commits or "").split()[:_COMMITS_SEARCHED]:
        # Of a few packed bytes, git makes gigabytes.
        size = repository.run(folder, "cat-file", "-s", f"{commit}:./{path}")
        if not size or not size.isdecimal() or int(size) > READ_LIMIT:
            continue
        content = repository.read(folder, "cat-file", "blob", f"{commit}:./{path}")
        if content is not None and hashlib.sha256(content).hexdigest() == sha256:
            return content
    return None


@contextmanager
def _open_repository(folder: Path) -> Iterator[_Repository | None]:
    """Give the repository that `folder` lies in, under a configuration of our own; None where there is none.

    Raises ToolError for a pipe in the place of a file that git reads.
    """
    inside = folder.resolve()
    work_tree = next((parent for parent in (inside, *inside.parents) if (parent / ".git").exists()), None)
    if work_tree is None:
        yield None
        return
    own, shared = find_git_directory(work_tree)
    refuse_git_pipes(work_tree, inside, own, shared)
    head = read_small_file(own / "HEAD")
    if not head:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="trainchart-git-") as made:
        shadow = Path(made)
        (shadow / "info").mkdir()
        (shadow / "HEAD").write_bytes(head)
        # Filters of the user's own may take programs from the folder that git works in. Nothing overrides this file.
        (shadow / "info" / "attributes").write_text("* -filter\n")
        # This file only: git would also read files that it includes, which may take forever.
        asked = ("--file", str(shared / "config"), "--no-includes", "--null", "--get-regexp", _SETTINGS)
        (shadow / "config").write_text(_write_config(_run_git(("--git-dir", made, "config", *asked), {}) or ""))
        for name in _BORROWED:
            if (shared / name).exists():
                (shadow / name).symlink_to(shared / name)
        borrowed = {"GIT_OBJECT_DIRECTORY": str(shared / "objects"), "GIT_INDEX_FILE": str(own / "index")}
        yield _Repository(shadow, work_tree, borrowed)


def _write_config(settings: str) -> str:
    """Return the configuration of a git directory of our own; `settings` is what git prints with --null."""
    # A value may hold line breaks, behind which it could look like a setting of another name.
    pairs = [setting.partition("\n") for setting in settings.split("\0")]
    lines = ["[core]", "repositoryformatversion = 1", "fsmonitor = false"]
    for key, _, value in pairs:
        section, _, name = key.partition(".")
        lines += [f"[{section}]", f"{name} = {value}"] if value.isalnum() else []
    return "\n".join(lines) + "\n"


def _run_git(arguments: Iterable[str], environment: Mapping[str, str]) -> str | None:
    """Return the text that git prints; None where it fails, is missing, or prints too much."""
    return _as_text(_ask_git(arguments, environment))


def _as_text(printed: bytes | None) -> str | None:
    # Names of files are what the user likes.
    return None if printed is None else printed.decode(errors="replace").strip()


def limit_memory() -> None:
    """Bound the memory of this process, which is about to become git."""
    lower_limit(resource.RLIMIT_DATA, _MEMORY_LIMIT)


def lower_limit(kind: int, most: int) -> None:
    """Let this process have at most so much; less, where its user has set less."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _ask_git(arguments: Iterable[str], environment: Mapping[str, str], limit: int | None = None) -> bytes | None:
    """Return what git prints; None where it fails, is missing, or prints more than `limit`, by default READ_LIMIT.

    Raises _TimedOutError.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    end = time.monotonic() + _TIMEOUT_SECONDS
    try:
        started = subprocess.Popen(
            ["git", *arguments],
            env={**inherited, **_ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=limit_memory,  # noqa: PLW1509  # takes no lock
        )
    except (OSError, ValueError):  # a name with a NUL byte
        return None
    with started:
        try:
            assert started.stdout is not None
            printed = _read_until(started.stdout.fileno(), READ_LIMIT if limit is None else limit, end)
            if printed is None:
                return None
            return printed if started.wait(max(0.0, end - time.monotonic())) == 0 else None
        except subprocess.TimeoutExpired as error:
            raise _TimedOutError from error
        finally:
            started.kill()


def _read_until(handle: int, limit: int, end: float) -> bytes | None:
    """Return all that comes from a pipe; None for more than `limit` bytes. Raises _TimedOutError at `end`."""
    printed = bytearray()
    waiting = select.poll()  # select.select knows no handle above 1023
    waiting.register(handle, select.POLLIN)
    while len(printed) <= limit:
        if not waiting.poll(max(0.0, end - time.monotonic()) * 1000):
            raise _TimedOutError
        piece = os.read(handle, _PIECE)
        if not piece:
            return bytes(printed)
        printed += piece
    return None
