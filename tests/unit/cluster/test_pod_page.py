"""A page of a pod, out of the frames in which an API server forwards a port."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.unit.cluster.test_pod_exec import Stream, frame
from trainchart.cluster.io import pod_page
from trainchart.cluster.io.api_stream import ApiStream
from trainchart.cluster.io.pod_page import read_pod_page
from trainchart.errors import ClusterError, Forbidden, Unreachable

PORT = (2223).to_bytes(2, "little")
BEGIN = frame(b"\x00" + PORT) + frame(b"\x01" + PORT)
"""With which each channel begins."""


class Api:
    def __init__(self, stream: Any, refusal: Exception | None = None) -> None:
        self.stream, self.refusal = stream, refusal

    def open_stream(self, path: str, params: Any, headers: Any, what: str) -> ApiStream:
        assert (path, params) == ("api/v1/namespaces/n/pods/p/portforward", {"ports": "2223"})
        if self.refusal:
            raise self.refusal
        return ApiStream(self.stream, self.stream.close, f"cannot {what}")


def answer(body: bytes, status: bytes = b"200 OK", length: int | None = None) -> bytes:
    size = str(len(body) if length is None else length).encode()
    return b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\nContent-Length: " + size + b"\r\n\r\n" + body


def data(content: bytes) -> bytes:
    return frame(b"\x00" + content)


def read(content: bytes, piece: int = 7, refusal: Exception | None = None) -> tuple[bytes, Stream]:
    stream = Stream(content, piece)
    api: Any = Api(stream, refusal)
    return read_pod_page(api, "n", "p", 2223, "/status"), stream


@pytest.mark.parametrize("piece", [1, 1_000_000])
def test_a_page_is_read_however_it_is_cut(piece: int) -> None:
    whole = answer(b"x" * 300)
    # No end of the connection: the length of the page is enough.
    body, stream = read(BEGIN + data(whole[:20]) + frame(b"", 0x89) + data(whole[20:]), piece)
    assert body == b"x" * 300 and stream.is_closed
    mask, masked = stream.written[2:6], stream.written[6 : 2 + 4 + (stream.written[1] & 0x7F)]
    sent = bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))
    assert sent.startswith(b"\x00GET /status HTTP/1.1\r\nHost: localhost\r\n") and sent.endswith(b"\r\n\r\n")


def test_a_port_that_is_closed_is_told() -> None:
    with pytest.raises(ClusterError, match="cannot connect to port 2223 of p: connection refused"):
        read(BEGIN + frame(b"\x01connection refused"))


@pytest.mark.parametrize("content", [b"", BEGIN, BEGIN + data(answer(b"{}", b"401 Unauthorized")), BEGIN + data(b"x")])
def test_what_is_no_page_is_an_error(content: bytes) -> None:
    with pytest.raises(ClusterError, match="cannot read /status of p"):
        read(content)


def test_a_length_of_many_digits_is_none() -> None:
    page = answer(b"{}").replace(b"Content-Length: 2", b"Content-Length: " + b"2" * 5000)
    content, _ = read(BEGIN + data(page))
    assert content == b"{}"


def test_a_page_without_end_is_given_up() -> None:
    with pytest.raises(ClusterError, match="more than"):
        read(BEGIN + data(answer(b"x" * 300_000, length=10**9)), 1_000_000)


def test_a_refusal_stays_one() -> None:
    with pytest.raises(Forbidden):
        read(b"", refusal=Forbidden("not for you"))


def test_many_small_frames_are_read_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # To copy all that has come with each of them takes far longer.
    monkeypatch.setattr(pod_page, "_SECONDS", 8.0)
    monkeypatch.setattr(pod_page, "_BYTES", 8_000_000)
    page = answer(b"x" * 4_000_000)
    body, _ = read(BEGIN + b"".join(data(page[i : i + 100]) for i in range(0, len(page), 100)), 1_000_000)
    assert len(body) == 4_000_000


def test_stream_of_a_trickling_pod_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    is_closed = threading.Event()

    class Trickle(Stream):
        def read(self, most: int, timeout: float) -> bytes:
            is_closed.wait(0.001)
            return data(b"x")

        def close(self) -> None:
            is_closed.set()

    monkeypatch.setattr(pod_page, "_SECONDS", 0.05)
    api: Any = Api(Trickle(b"", 1))
    with pytest.raises(Unreachable, match=r"no answer within 0\.05 seconds"):
        read_pod_page(api, "n", "p", 2223, "/status")
    assert is_closed.wait(10), "its thread still runs and holds the connection"


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    class Silent(Stream):
        def read(self, most: int, timeout: float) -> bytes:
            is_over.wait(20)
            return b""

    monkeypatch.setattr(pod_page, "_SECONDS", 0.05)
    api: Any = Api(Silent(b"", 1))
    with pytest.raises(Unreachable, match=r"no answer within 0\.05 seconds"):
        read_pod_page(api, "n", "p", 2223, "/status")
    is_over.set()
