"""Runs a program in a container and reads what it prints, as `kubectl exec` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trainchart.cluster.io.api_frames import Frames, make_headers, read_channels
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, Unreachable
from trainchart.json_documents import parse_json

_SILENT_SECONDS = 60.0
"""Nothing comes for so long: the connection is taken for lost."""
_STDOUT, _STDERR, _STATUS = 1, 2, 3
_ERROR_LIMIT = 2000


def read_output(
    api: KubernetesApi, namespace: str, pod: str, container: str, command: Sequence[str], what: str
) -> Iterator[bytes]:
    """Yield the bytes that a command in a container writes to stdout.

    Raises:
        ClusterError: it could not be started, or has failed.
        Unreachable: the connection was lost; what has come so far is right.
    """
    path = f"api/v1/namespaces/{namespace}/pods/{pod}/exec"
    params = {"command": list(command), "container": container, "stdout": "true", "stderr": "true"}
    stream = api.open_stream(path, params, make_headers(), what)
    errors = b""
    try:
        for channel, data in read_channels(Frames(stream, _SILENT_SECONDS)):
            if channel == _STDOUT:
                yield data
            elif channel == _STDERR:
                errors = (errors + data)[-_ERROR_LIMIT:]
            elif channel == _STATUS:
                _require_success(data, errors, what)
                return
    finally:
        stream.close()
    raise Unreachable(f"cannot {what}: the connection has ended", hint="try again")


def _require_success(status: bytes, errors: bytes, what: str) -> None:
    try:
        document: Any = parse_json(status)
        if document["status"] == "Success":
            return
        message = str(document.get("message"))
    except (ValueError, KeyError, TypeError, AttributeError):
        message = "the answer cannot be read"
    last = errors.decode(errors="replace").strip().rpartition("\n")[2]
    raise ClusterError(f"cannot {what}: {last or message}"[:_ERROR_LIMIT])
