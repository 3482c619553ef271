"""The socket over which tests ask the keeper to stop and start components: one JSON object a line, each way."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOCKET = "control.sock"
_REQUEST_SECONDS = 5
"""How long the keeper waits for the line of somebody who has connected."""


class ControlError(Exception):
    """The keeper refused a request, or is gone."""


def listen(folder: Path) -> socket.socket:
    """Open the keeper's end."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / SOCKET))
    server.listen()
    return server


def serve(connection: socket.socket, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer the only request of a connection, with an error if that is what comes of it.

    Nothing is raised and nobody is waited for without end: the cluster ends with the process that serves.
    """
    connection.settimeout(_REQUEST_SECONDS)
    try:
        with connection.makefile() as stream:
            line = stream.readline()
    except OSError:
        return
    try:
        told = answer(json.loads(line))
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    # Whoever asked may have been killed meanwhile.
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(told).encode() + b"\n")


def ask(folder: Path, request: dict[str, Any], timeout_seconds: float = 30) -> dict[str, Any]:
    """Ask the keeper of the cluster in this folder; ControlError when it answers with an error or not at all."""
    # The path of a socket has a limit of 108 bytes, a folder in somebody's cache has none.
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(f"/proc/self/fd/{descriptor}/{SOCKET}")
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as stream:
                line = stream.readline()
    except OSError as error:
        raise ControlError(f"the cluster in {folder} does not answer: {error}") from error
    finally:
        os.close(descriptor)
    answer = json.loads(line or '{"error": "the connection ended"}')
    if "error" in answer:
        raise ControlError(answer["error"])
    assert isinstance(answer, dict)
    return answer
