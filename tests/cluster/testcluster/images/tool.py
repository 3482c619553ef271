"""Runs the programs that build images, so that none of them outlives this process or leaves a mount behind."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.testcluster.images.plan import isolated_argv

_SHOWN_LINES = 30


class ImageBuildError(Exception):
    """A program that builds images is missing or failed; the message has its command and last lines."""


def run_tool(argv: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
    """Run a program to its end, output into `log`. Raises ImageBuildError."""
    code = start_tool(argv, environment, log).wait()
    if code != 0:
        raise ImageBuildError(f"{' '.join(argv)}\nended with {code}:\n{last_lines(log)}")


def start_tool(argv: tuple[str, ...], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a program, output into `log`; it is the only child of the process that is returned."""
    if shutil.which(argv[0]) is None:
        raise ImageBuildError(f"{argv[0]} is not installed; it is in the Debian package of that name")
    with log.open("ab") as output:
        # The cache's lock is inherited: after a kill -9 it is free only when the last of the programs has ended.
        return subprocess.Popen(
            isolated_argv(argv), env=environment, stdout=output, stderr=subprocess.STDOUT, close_fds=False
        )


def last_lines(log: Path) -> str:
    """Return the end of a log file, for an error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
