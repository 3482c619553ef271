"""WebSocket frames of channels, in which API servers carry what is not HTTP.

https://www.rfc-editor.org/rfc/rfc6455, and v4.channel.k8s.io, which API servers have spoken since Kubernetes 1.4.
"""

from __future__ import annotations

import base64
import math
import os
import time
from collections.abc import Iterator

from trainchart.cluster.io.api_stream import ApiStream
from trainchart.errors import ClusterError, Unreachable

_CONTINUATION, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x2, 0x8, 0x9, 0xA
_LAST = 0x80
_FRAME_LIMIT = 16 * 1024 * 1024


def make_headers() -> dict[str, str]:
    """Return the headers that ask for such a connection."""
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
    }


def read_channels(frames: Frames) -> Iterator[tuple[int, bytes]]:
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
            frames.send(data, _PONG)
        elif kind == _CONTINUATION:
            yield channel, data
        elif data:
            channel = data[0]
            yield channel, data[1:]


class Frames:
    """A stream as WebSocket frames."""

    def __init__(self, stream: ApiStream, silent_seconds: float, end: float = math.inf) -> None:
        """After `silent_seconds` without a byte, the connection is taken for lost.

        Reads raise TimeoutError once time.monotonic() is `end`, whatever has come.
        """
        self._stream = stream
        self._silent_seconds = silent_seconds
        self._end = end
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
            raise ClusterError("the API server sends invalid WebSocket frames", hint="is a proxy in front of it?")
        data = self._take(size)
        return None if data is None else (head[0] & 0x0F, data)

    def send(self, data: bytes, kind: int = _BINARY) -> None:
        """Send a message of at most 64 kB, in one frame; what a client sends is masked."""
        size = bytes((0x80 | len(data),)) if len(data) <= 125 else b"\xfe" + len(data).to_bytes(2, "big")
        mask = os.urandom(4)
        long_mask = int.from_bytes((mask * (len(data) // 4 + 1))[: len(data)], "big")
        masked = (int.from_bytes(data, "big") ^ long_mask).to_bytes(len(data), "big")
        self._stream.write(bytes((_LAST | kind,)) + size + mask + masked)

    def is_waiting(self) -> bool:
        """Return whether a frame, or a part of one, was received that is not read yet."""
        return bool(self._buffer) or self._stream.holds_bytes()

    def _take(self, size: int) -> bytes | None:
        while True:
            left = self._end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if len(self._buffer) >= size:
                break
            try:
                data = self._stream.read(min(self._silent_seconds, left))
            except Unreachable:
                if time.monotonic() >= self._end:
                    raise TimeoutError from None
                raise
            if not data:
                return None
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken
