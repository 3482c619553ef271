"""The way into a cluster of the user's, or why there is none, in a line: found out once, and not by every test."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .access import Access, CommandFailed
from .choice import Named
from .users import pin_context

_ANSWER_SECONDS = 30


class NotUsable(Exception):
    """Tests cannot use the cluster that the user has named; one line."""


def open_cluster(named: Named, programs: tuple[Path, ...], kubeconfig: Path) -> Access:
    """Return access through a kubeconfig of its own, written to `kubeconfig`; NotUsable says why it would not work.

    `programs` are folders to be put in front of PATH; kubectl is the user's.
    """
    files = named.kubeconfig or str(Path("~/.kube/config").expanduser())
    access = Access(Path(files), named.context, programs)
    if not shutil.which("kubectl", path=access.environment["PATH"]):
        raise NotUsable(f"{named} is to be tested, and there is no kubectl on PATH")
    if not any(Path(file).is_file() for file in files.split(os.pathsep)):
        raise NotUsable(f"{named} is to be tested, and there is no file {files}")
    try:
        # Commands that a test pastes, such as those of NOTES, name no context.
        access = pin_context(access, kubeconfig)
        asked = ["kubectl", "auth", "can-i", "create", "namespaces"]
        done = access.run(asked, check=False, timeout_seconds=_ANSWER_SECONDS)
    except CommandFailed as error:
        raise NotUsable(f"{named} cannot be tested: {_last_line(str(error))}") from error
    except subprocess.TimeoutExpired as error:
        raise NotUsable(f"{named} cannot be tested: no answer within {_ANSWER_SECONDS} s") from error
    if done.stdout.strip() == "no":
        raise NotUsable(f"{named} cannot be tested: its user may not create namespaces, and every test has its own")
    if done.returncode != 0:
        raise NotUsable(f"{named} cannot be tested: {_last_line(done.stderr)}")
    return access


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["kubectl said nothing"])[-1]
