"""The model server's ports: clients that send nothing keep no others out."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path

import pytest

from tests.serving.running import running, wait_until
from trainchart_serving import grpc_api, server

pytestmark = pytest.mark.tensorflow


def is_ended(client: socket.socket) -> bool:
    """Return whether the server has ended a connection to which it has sent nothing of interest."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nG"])
def test_unfinished_rest_requests_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.2)
    with running(tmp_path, is_ready=False) as serving, connect(serving.rest) as client:
        client.sendall(sent)
        wait_until(lambda: is_ended(client), "the connection has ended")


START = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LIMIT = 64 * 1024
MANY, LONG = b"a: b\r\n" * LIMIT, b"a: " + b"b" * 2 * LIMIT
CHUNKS = b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def read_all(client: socket.socket) -> bytes:
    client.settimeout(10)
    return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize("headers", [MANY, LONG])
def test_headers_without_end_get_431(tmp_path: Path, headers: bytes) -> None:
    with running(tmp_path, is_ready=False) as serving, connect(serving.rest) as client:
        # No more than is read: what is not makes the kernel drop the answer.
        client.sendall((START + headers)[:LIMIT])
        head, _, body = read_all(client).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431 ")
        assert json.loads(body) == {"error": "the request's headers exceed 64 KiB."}


@pytest.mark.parametrize("sent", [CHUNKS + b"0\r\n" + MANY, CHUNKS + b"0\r\n" + LONG, CHUNKS + b"1;" + LONG[3:]])
def test_trailers_without_end_close_connection(tmp_path: Path, sent: bytes) -> None:
    with running(tmp_path, is_ready=False) as serving, connect(serving.rest) as client:
        with contextlib.suppress(OSError):
            client.sendall(sent)
        wait_until(lambda: is_ended(client), "the connection has ended", 10)


def test_headers_below_the_limit_are_read(tmp_path: Path) -> None:
    with running(tmp_path, is_ready=False) as serving:
        for _ in range(3):
            assert serving.ask("GET", "/healthz", headers={"a": "b" * 60_000}).status == 200
        assert serving.ask("POST", "/healthz", b"x" * 10 * LIMIT).status == 405
        with connect(serving.rest) as client:
            client.sendall((START + b"\r\n") * 5_000 + START + b"Connection: close\r\n\r\n")
            assert read_all(client).count(b"HTTP/1.1 200 ") == 5_001


def test_silent_rest_connections_give_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 5)
    with running(tmp_path, is_ready=False) as serving:
        silent = [connect(serving.rest) for _ in range(8)]
        assert serving.ask("GET", "/healthz").status == 200
        wait_until(lambda: is_ended(silent[0]), "the oldest has ended")
        for each in silent:
            each.close()


def test_silent_grpc_connections_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_api, "_HANDSHAKE_SECONDS", 0.3)
    with running(tmp_path, is_ready=False) as serving, connect(serving.grpc) as client:
        wait_until(lambda: is_ended(client), "the connection has ended")


def test_idle_grpc_connections_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_api, "_IDLE_SECONDS", 0.3)
    with running(tmp_path, is_ready=False) as serving, connect(serving.grpc) as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
        wait_until(lambda: is_ended(client), "the connection has ended")
