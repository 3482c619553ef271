"""What git knows about a folder, for the build annotations of a chart archive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class CommitInfo:
    """The last commit that changed a folder, and whether its files have changed since."""

    commit: str
    committed_epoch: int
    is_dirty: bool


def read_commit(folder: Path, *, without: Iterable[Path] = ()) -> CommitInfo | None:
    """Return the last commit that touched `folder`; None where git is missing or knows no commit of it.

    It is not dirty for changes of the files `without`, given by absolute path.
    """
    # The last commit of the folder, not of the repository: an unrelated commit must not change the archive.
    # A user's log.showSignature would put what gpg says before it.
    shown = _git(folder, "log", "-1", "--no-show-signature", "--format=%H %ct", "--", ".")
    if not shown:
        return None
    commit, _, epoch = shown.partition(" ")
    passed_over = (os.path.relpath(path, folder.resolve()) for path in sorted(without))
    excluded = (f":(exclude,literal){path}" for path in passed_over if not path.startswith(os.pardir))
    return CommitInfo(commit, int(epoch), bool(_git(folder, "status", "--porcelain", "--", ".", *excluded)))


def describe_commit(folder: Path) -> str:
    """Return the nearest tag and the commits since, or the commit where there is no tag; empty without git."""
    return _git(folder, "describe", "--always", "--tags")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # names of files are what the user likes
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
