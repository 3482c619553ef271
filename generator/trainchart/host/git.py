"""What git knows about a folder, for the build annotations of a chart archive."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class CommitInfo:
    """The last commit that changed a folder, and whether its files have changed since."""

    commit: str
    committed_epoch: int
    is_dirty: bool


def read_commit(folder: Path) -> CommitInfo | None:
    """Return the last commit that touched `folder`; None where git is missing or knows no commit of it."""
    # The last commit of the folder, not of the repository: an unrelated commit must not change the archive.
    # A user's log.showSignature would put what gpg says before it.
    shown = _git(folder, "log", "-1", "--no-show-signature", "--format=%H %ct", "--", ".")
    if not shown:
        return None
    commit, _, epoch = shown.partition(" ")
    return CommitInfo(commit, int(epoch), bool(_git(folder, "status", "--porcelain", "--", ".")))


def describe_commit(folder: Path) -> str:
    """Return the nearest tag, the commits since, and `-dirty` where files have changed; empty without git."""
    return _git(folder, "describe", "--always", "--tags", "--dirty")


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
