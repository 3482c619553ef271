"""The console's server over real sockets: clients that send or read nothing keep no others out, and streams go on."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.types import Receive, Scope, Send

from trainchart.console.io.serve import make_server
from trainchart_runtime.io.connections import ConnectionLimits

LONG = 60.0
"""Longer than any test waits."""
WAIT = 20.0
"""Seconds after which a test fails."""
REQUEST = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = b"x" * 20_000_000


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/body":
        while (await receive()).get("more_body"):
            pass
    if scope["path"] == "/large":
        await send({"type": "http.response.body", "body": LARGE, "more_body": True})
    if scope["path"] == "/stream":
        for _ in range(5):
            await send({"type": "http.response.body", "body": b"event\n", "more_body": True})
            await asyncio.sleep(0.1)
    await send({"type": "http.response.body", "body": b"end"})


class Serving:
    """A server in a thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._address = self._listener.getsockname()
        self._server = make_server(answer, limits)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve(sockets=[self._listener])))
        self._thread.start()

    def connect(self, request: bytes = b"") -> socket.socket:
        client = socket.create_connection(self._address, timeout=WAIT)
        client.sendall(request)
        return client

    def wait_for(self, connections: int) -> None:
        """Return once the server has so many connections; fail after WAIT."""
        end = time.monotonic() + WAIT
        while len(self._server.server_state.connections) != connections:
            assert time.monotonic() < end
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(WAIT)
        self._listener.close()


@pytest.fixture
def make_serving() -> Iterator[type[Serving]]:
    made: list[Serving] = []

    class Kept(Serving):
        def __init__(self, limits: ConnectionLimits) -> None:
            super().__init__(limits)
            made.append(self)

    yield Kept
    for each in made:
        each.stop()


def read_to_end(client: socket.socket) -> bytes:
    """Return what the server still sends until it ends the connection; fails where it does not."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize(
    "request_begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        REQUEST % b"" + b"G",
        b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\nab",
    ],
    ids=["nothing", "headers", "next-request", "body", "body-of-an-answered-request"],
)
def test_an_unfinished_request_ends(make_serving: type[Serving], request_begun: bytes) -> None:
    serving = make_serving(ConnectionLimits(200, head_seconds=0.2, body_seconds=0.2, read_seconds=LONG))
    with serving.connect(request_begun) as client:
        read_to_end(client)


def test_slow_bytes_do_not_extend_the_limit(make_serving: type[Serving]) -> None:
    serving = make_serving(ConnectionLimits(200, head_seconds=0.3, body_seconds=LONG, read_seconds=LONG))
    end = time.monotonic() + WAIT
    with serving.connect(b"GET / HTTP/1.1\r\n") as client, pytest.raises(OSError):
        while time.monotonic() < end:
            client.sendall(b"a: b\r\n")
            time.sleep(0.01)


def test_a_client_that_reads_nothing_ends(make_serving: type[Serving]) -> None:
    serving = make_serving(ConnectionLimits(200, head_seconds=LONG, body_seconds=LONG, read_seconds=0.2))
    with serving.connect(REQUEST % b"large"):
        serving.wait_for(1)
        serving.wait_for(0)


def test_a_slow_reader_gets_all(make_serving: type[Serving]) -> None:
    serving = make_serving(ConnectionLimits(200, head_seconds=0.4, body_seconds=0.4, read_seconds=0.4))
    with serving.connect(REQUEST % b"large") as client:
        count = 0
        while part := client.recv(400_000):
            count += len(part)
            time.sleep(0.02)
    assert count > len(LARGE)


def test_streams_have_no_limit(make_serving: type[Serving]) -> None:
    serving = make_serving(ConnectionLimits(200, head_seconds=0.2, body_seconds=0.2, read_seconds=0.2))
    with serving.connect(REQUEST % b"stream") as client:
        assert read_to_end(client).count(b"event") == 5


def test_idle_connections_give_way(make_serving: type[Serving]) -> None:
    serving = make_serving(ConnectionLimits(10, head_seconds=LONG, body_seconds=LONG, read_seconds=LONG))
    silent = [serving.connect(b"GET / HTTP/1.1\r\n"[: 2 * number]) for number in range(12)]
    with serving.connect(REQUEST % b"") as client:
        assert b" 200 " in client.recv(100)
    for each in silent:
        each.close()
