"""The socket over which tests ask the keeper to stop and start components: one JSON object a line, each way."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

SOCKET = "control.sock"


class ControlError(Exception):
    """The keeper refused a request, or is gone."""


def listen(folder: Path) -> socket.socket:
    """Open the keeper's end."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / SOCKET))
    server.listen()
    return server


def read_request(connection: socket.socket) -> dict[str, Any]:
    """Read the only line of a connection."""
    with connection.makefile() as stream:
        request = json.loads(stream.readline() or "{}")
    assert isinstance(request, dict)
    return request


def write_answer(connection: socket.socket, answer: dict[str, Any]) -> None:
    """Send the only line of the answer."""
    connection.sendall(json.dumps(answer).encode() + b"\n")


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
