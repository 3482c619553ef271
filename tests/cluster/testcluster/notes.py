"""NOTES.txt as a user meets it: the commands that it prints, pasted into a shell as they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.free_ports import find_free_port

from .access import Access

_COMMAND = re.compile(r"^(?P<label>.+?): +(?P<command>(?:kubectl|helm) .+)$", re.MULTILINE)


def find_commands(notes: str) -> dict[str, str]:
    """Return the commands that the notes print, by the words in front of their colon."""
    return {match["label"]: match["command"] for match in _COMMAND.finditer(notes)}


def paste(access: Access, command: str, *, timeout_seconds: float = 120) -> str:
    """Run a command as a shell does, and return what it printed; CommandFailed if it exits with an error."""
    return access.run(["sh", "-c", command], timeout_seconds=timeout_seconds).stdout


@contextmanager
def forward_port(access: Access, command: str) -> Iterator[int]:
    """Run a `kubectl port-forward … PORT` as a shell does, and yield the local port, which need not be reached yet.

    Only the local port is another one than printed, since on this machine the printed one may be taken.
    """
    port = find_free_port()
    before, _, target = command.rpartition(" ")
    process = subprocess.Popen(
        ["sh", "-c", f"exec {before} {port}:{target}"], stdout=subprocess.DEVNULL, env=access.environment
    )
    try:
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)
