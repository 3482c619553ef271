"""Runs the programs that build images, so that none of them outlives this process or leaves a mount behind."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from testcluster.images.plan import isolated_argv

_SHOWN_LINES = 30


class ImageBuildError(Exception):
    """A program that builds images is missing or failed; the message has its command and last lines."""


def run_tool(argv: tuple[str, ...], environment: Mapping[str, str], log: Path) -> None:
    """Run a program to its end, output into `log`. Raises ImageBuildError."""
    with log.open("ab") as output:
        done = subprocess.run(isolated_argv(argv), env=environment, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise ImageBuildError(f"{' '.join(argv)}\nended with {done.returncode}:\n{last_lines(log)}")


def last_lines(log: Path) -> str:
    """Return the end of a log file, for an error message."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])
