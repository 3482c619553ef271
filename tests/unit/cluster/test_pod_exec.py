"""What a container prints, out of the WebSocket frames of an API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainchart.cluster.io.api_stream import ApiStream
from trainchart.cluster.io.pod_exec import read_output
from trainchart.errors import ClusterError, Unreachable


class Stream:
    """Gives bytes in pieces of one size, and keeps what is written."""

    def __init__(self, content: bytes, piece: int) -> None:
        self.content, self.piece, self.written, self.is_closed = content, piece, b"", False

    def read(self, most: int, timeout: float) -> bytes:
        piece, self.content = self.content[: self.piece], self.content[self.piece :]
        return piece

    def write(self, data: bytes, timeout: float) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True


class Api:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def open_stream(self, path: str, params: Any, headers: Any, what: str) -> ApiStream:
        assert params["command"] == ["cat", "x"] and path.endswith("/pods/p/exec")
        return ApiStream(self.stream, self.stream.close, f"cannot {what}")


def frame(data: bytes, kind: int = 0x82) -> bytes:
    size = len(data)
    if size < 126:
        return bytes((kind, size)) + data
    return (
        bytes((kind, 126)) + size.to_bytes(2, "big") + data
        if size < 65536
        else bytes((kind, 127)) + size.to_bytes(8, "big") + data
    )


def status(**body: Any) -> bytes:
    return frame(b"\x03" + json.dumps(body).encode())


def read(content: bytes, piece: int = 7) -> tuple[bytes, Stream]:
    stream = Stream(content, piece)
    api: Any = Api(stream)
    return b"".join(read_output(api, "n", "p", "c", ["cat", "x"], "copy x")), stream


@pytest.mark.parametrize("piece", [1, 7, 1_000_000])
def test_output_is_put_together_from_frames(piece: int) -> None:
    parts = [b"", b"a" * 10, b"b" * 300, b"c" * 70_000]
    content = b"".join(frame(b"\x01" + part) for part in parts)
    found, stream = read(content + frame(b"\x02warning") + status(status="Success") + frame(b"", 0x88), piece)
    assert found == b"".join(parts) and stream.is_closed


def test_a_message_may_have_several_frames() -> None:
    content = frame(b"\x01ab", 0x02) + frame(b"cd", 0x00) + frame(b"ef", 0x80) + status(status="Success")
    assert read(content)[0] == b"abcdef"


def test_a_ping_is_answered_masked() -> None:
    _, stream = read(frame(b"hello", 0x89) + status(status="Success"))
    head, mask, masked = stream.written[:2], stream.written[2:6], stream.written[6:]
    assert head == bytes((0x8A, 0x85))
    assert bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked)) == b"hello"


def test_a_command_that_fails_is_told_by_its_last_line() -> None:
    content = frame(b"\x02Traceback\nOSError: no") + status(status="Failure", message="exit code 1")
    with pytest.raises(ClusterError, match="cannot copy x: OSError: no"):
        read(content)
    with pytest.raises(ClusterError, match="cannot copy x: exit code 1"):
        read(status(status="Failure", message="exit code 1"))


@pytest.mark.parametrize("content", [b"", frame(b"\x01abc"), frame(b"\x01abc")[:3], frame(b"", 0x88)])
def test_a_connection_that_ends_early_is_lost(content: bytes) -> None:
    with pytest.raises(Unreachable):
        read(content)


def test_frames_that_no_server_sends_are_refused() -> None:
    with pytest.raises(ClusterError, match="invalid WebSocket frames"):
        read(bytes((0x82, 0xFF)) + bytes(12))
    with pytest.raises(ClusterError, match="invalid WebSocket frames"):
        read(bytes((0x82, 127)) + (2**40).to_bytes(8, "big"))
