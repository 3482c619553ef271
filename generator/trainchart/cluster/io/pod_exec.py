"""Runs a program in a container and reads what it prints, as `kubectl exec` does: WebSocket frames of channels.

https://www.rfc-editor.org/rfc/rfc6455, and v4.channel.k8s.io, which API servers have spoken since Kubernetes 1.4.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from typing import Any

from trainchart.cluster.io.api_stream import ApiStream
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, Unreachable
from trainchart.json_documents import parse_json

_SILENT_SECONDS = 60.0
"""Nothing comes for so long: the connection is taken for lost."""
_STDOUT, _STDERR, _STATUS = 1, 2, 3
_CONTINUATION, _CLOSE, _PING = 0x0, 0x8, 0x9
_FRAME_LIMIT = 16 * 1024 * 1024
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
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    }
    stream = api.open_stream(path, params, headers, what)
    errors = b""
    try:
        for channel, data in _read_channels(_Frames(stream)):
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


def _read_channels(frames: _Frames) -> Iterator[tuple[int, bytes]]:
    """Yield channel and content of each message, until the other side closes."""
    channel = -1
    while True:
        frame = frames.read()
        if frame is None:
            return
        kind, data = frame
        if kind == _CLOSE:
            return
        if kind == _PING:
            frames.answer(data)
        elif kind == _CONTINUATION:
            yield channel, data
        elif data:
            channel = data[0]
            yield channel, data[1:]


class _Frames:
    """Takes a stream apart into WebSocket frames."""

    def __init__(self, stream: ApiStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    def read(self) -> tuple[int, bytes] | None:
        """Return kind and content of the next frame; None where the stream has ended."""
        head = self._take(2)
        if head is None:
            return None
        size = head[1] & 0x7F
        if size > 125:
            longer = self._take(2 if size == 126 else 8)
            if longer is None:
                return None
            size = int.from_bytes(longer, "big")
        if head[1] & 0x80 or size > _FRAME_LIMIT:
            raise ClusterError("the API server sends frames that it must not", hint="is a proxy in front of it?")
        data = self._take(size)
        return None if data is None else (head[0] & 0x0F, data)

    def answer(self, data: bytes) -> None:
        """Answer a ping; what a client sends is masked."""
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))
        self._stream.write(bytes((0x8A, 0x80 | len(data))) + mask + masked)

    def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            data = self._stream.read(_SILENT_SECONDS)
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken
