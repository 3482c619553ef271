"""A port of a pod as one of this machine: bytes both ways, out of the frames in which an API server forwards it."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cluster.test_pod_exec import Stream, frame
from trainchart.cluster.io.api_frames import Frames
from trainchart.cluster.io.api_stream import ApiStream
from trainchart.cluster.io.port_forward import HOST, PortForward
from trainchart.errors import ClusterError, Forbidden, ToolError

PORT = (8888).to_bytes(2, "little")
BEGIN = frame(b"\x00" + PORT) + frame(b"\x01" + PORT)
"""With which each channel begins."""
SECONDS = 20.0


class Pipe:
    """The network stream of an HTTP library over one end of a pair of sockets."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def read(self, most: int, timeout: float) -> bytes:
        self.end.settimeout(timeout)
        return self.end.recv(most)

    def write(self, data: bytes, timeout: float) -> None:
        self.end.sendall(data)

    def get_extra_info(self, name: str) -> Any:
        return self.end if name == "socket" else None


class Api:
    """Gives each connection a pair of sockets, and keeps the server's end."""

    def __init__(self, refusal: ClusterError | None = None) -> None:
        self.refusal = refusal
        self.server, self._client = socket.socketpair()
        self.server.settimeout(SECONDS)
        self.is_closed = threading.Event()

    def open_stream(self, path: str, params: Any, headers: Any, what: str) -> ApiStream:
        assert (path, params) == ("api/v1/namespaces/n/pods/p/portforward", {"ports": "8888"})
        if self.refusal:
            raise self.refusal
        return ApiStream(Pipe(self._client), self.is_closed.set, f"cannot {what}")


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    with api.server:
        yield api


def connect(api: Any) -> tuple[PortForward, socket.socket]:
    forward = PortForward(api, "n", lambda: "p", 8888)
    return forward, socket.create_connection((HOST, forward.local_port), timeout=SECONDS)


def read_all(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size and (data := connection.recv(size - len(received))):
        received += data
    return received


def unmask(sent: bytes) -> bytes:
    """Return the content of one frame of a client."""
    size, start = sent[1] & 0x7F, 2
    if size == 126:
        size, start = int.from_bytes(sent[2:4], "big"), 4
    mask, masked = sent[start : start + 4], sent[start + 4 :]
    assert len(masked) == size
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))


def test_bytes_go_both_ways_until_the_pod_closes(api: Api) -> None:
    forward, connection = connect(api)
    with connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert unmask(api.server.recv(1000)) == b"\x00GET / HTTP/1.1\r\n\r\n"
        content = bytes(range(256)) * 300
        api.server.sendall(BEGIN + frame(b"\x00" + content[:100]) + frame(b"\x00" + content[100:]))
        assert read_all(connection, len(content)) == content
        connection.sendall(b"more")
        assert unmask(api.server.recv(1000)) == b"\x00more"
        api.server.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b"" and api.is_closed.wait(SECONDS)
    forward.close()


def test_a_browser_that_leaves_ends_the_connection_to_the_pod(api: Api) -> None:
    forward, connection = connect(api)
    connection.close()
    assert api.is_closed.wait(SECONDS)
    forward.close()


def test_what_the_kubelet_says_against_a_port_is_kept(api: Api) -> None:
    forward, connection = connect(api)
    with connection:
        api.server.sendall(BEGIN + frame(b"\x01connection refused"))
        assert connection.recv(10) == b""
    assert forward.last_error == "cannot connect to port 8888 of p: connection refused"
    forward.close()


def test_a_refused_connection_ends_and_others_go_on() -> None:
    api = Api(Forbidden("you may not create pods/portforward"))
    forward, connection = connect(api)
    with connection:
        assert connection.recv(10) == b""
    with socket.create_connection((HOST, forward.local_port), timeout=SECONDS) as again:
        assert again.recv(10) == b"" and "portforward" in forward.last_error
    forward.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((HOST, forward.local_port), timeout=SECONDS)


def test_a_taken_port_is_named() -> None:
    api: Any = Api()
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ToolError, match=f"cannot listen on port {port} of 127.0.0.1: .*in use"):
            PortForward(api, "n", lambda: "p", 8888, port)


@given(st.one_of(st.binary(max_size=300), st.integers(0, 65535).map(bytes)))
def test_a_frame_of_any_size_is_masked_and_whole(data: bytes) -> None:
    stream = Stream(b"", 1)
    Frames(ApiStream(stream, stream.close, ""), SECONDS).send(data)
    assert unmask(stream.written) == data


def test_nothing_is_waited_for_that_is_there_already(api: Api) -> None:
    """Bytes that were read with an earlier frame, or decrypted with it, make no socket readable."""
    api.server.sendall(frame(b"\x00a") + frame(b"\x00b"))
    stream = api.open_stream("api/v1/namespaces/n/pods/p/portforward", {"ports": "8888"}, {}, "x")
    frames = Frames(stream, SECONDS)
    assert frames.read() == (2, b"\x00a") and frames.is_waiting()
    assert not select.select([stream.socket], [], [], 0)[0]
    assert frames.read() == (2, b"\x00b") and not frames.is_waiting()
