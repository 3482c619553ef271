"""A proxy before a repository that breaks chosen requests: cut before, cut after, another answer, other bytes."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from tests.repositories.chart_servers import in_thread


@dataclass(frozen=True)
class Seen:
    """A request: its number from 0, and what it asks for."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """An answer that the server behind never gave."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"refused by the test"


CUT_BEFORE = "cut before the server gets it"
CUT_AFTER = "cut after the server has done it"
CUT_ANSWER = "cut in the middle of the answer"
SPOIL = "change a byte of the answer"
Fault = str | Reply | None


class Proxy:
    """Forwards to `upstream`; `decide` says of every request what goes wrong."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.host = ""
        self.decide: Callable[[Seen], Fault] = lambda seen: None
        self.seen: list[Seen] = []
        self.added_headers: dict[str, str] = {}
        """What every answer of the server gets on its way."""
        self._lock = Lock()

    def note(self, method: str, path: str, headers: Mapping[str, str]) -> Seen:
        with self._lock:
            seen = Seen(len(self.seen), method, path, headers)
            self.seen.append(seen)
        return seen

    def restart(self, decide: Callable[[Seen], Fault]) -> None:
        """Count from 0 again, with other faults."""
        self.seen.clear()
        self.decide = decide


@contextlib.contextmanager
def proxied(upstream: str) -> Iterator[Proxy]:
    """Give a proxy before the server at `upstream` (host and port)."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.proxy = Proxy(upstream)  # type: ignore[attr-defined]
    with in_thread(server) as host:
        server.proxy.host = host  # type: ignore[attr-defined]
        yield server.proxy  # type: ignore[attr-defined]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def _forward(self) -> None:
        proxy: Proxy = self.server.proxy  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = proxy.decide(proxy.note(self.command, self.path, dict(self.headers)))
        if isinstance(fault, Reply):
            self._answer(fault.status, dict(fault.headers), fault.body)
        elif fault == CUT_BEFORE:
            self._hang_up()
        else:
            self._pass_on(proxy, body, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_LOCK = do_UNLOCK = _forward  # noqa: N815

    def _pass_on(self, proxy: Proxy, body: bytes, fault: Fault) -> None:
        connection = http.client.HTTPConnection(proxy.upstream, timeout=60)
        try:
            # With the Host that the client knows, so that what the server calls itself leads through here again.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for key, value in self.headers.items():
                if key.lower() not in ("connection", "accept-encoding"):
                    connection.putheader(key, value)
            connection.endheaders(body or None)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if fault == CUT_AFTER:
            self._hang_up()
            return
        if fault == SPOIL and content:
            content = content[:-1] + bytes([content[-1] ^ 1])
        drop = {"connection", "transfer-encoding", "date", "server"} | (
            {"content-length"} if self.command != "HEAD" else set()
        )
        headers = {key: value for key, value in response.getheaders() if key.lower() not in drop}
        self._answer(response.status, headers | proxy.added_headers, content, cut=fault == CUT_ANSWER)

    def _answer(self, status: int, headers: dict[str, str], body: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body) + 1 if cut else len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if cut:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
