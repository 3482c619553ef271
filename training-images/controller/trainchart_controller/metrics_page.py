"""Answer GET /metrics in a thread of its own, from the last state that the controller has shown.

The run never waits for it: showing a state is an assignment, requests are small and short, one at a time, and a port
that cannot be used is a line in the log. Not http.server, which costs memory in every controller and has no limit on
the time of a whole request.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Optional, Tuple

from trainchart_controller.console import print_line
from trainchart_controller.metrics import CONTENT_TYPE, RunView, follow_run, render_metrics
from trainchart_runtime.run_state import RunState

_REQUEST_SECONDS = 2.0
_REQUEST_BYTES = 8192
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class MetricsPage:
    """The page of one run; it opens with the first state that is shown."""

    def __init__(self, release: str, address: Optional[Tuple[str, int]]) -> None:
        self._release = release
        self._address = address
        self._view: Optional[RunView] = None

    def show(self, state: RunState) -> None:
        """Answer with `state` from now on."""
        before = self._view
        if before is None or state is not before.state:
            self._view = follow_run(before, state)
        if before is None and self._address is not None:
            threading.Thread(target=self._serve, args=self._address, name="metrics", daemon=True).start()

    def _serve(self, host: str, port: int) -> None:
        try:
            listener = _listen(host, port)
        except OSError as err:
            print_line(f"no metrics, port {port} cannot be used: {err}")
            return
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                # Out of file descriptors, or the client is gone already.
                time.sleep(0.1)
                continue
            with connection:
                try:
                    self._answer(connection)
                except OSError:
                    pass

    def _answer(self, connection: socket.socket) -> None:
        words = _read_request_line(connection).split()
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return _send(connection, 400)
        if words[0] not in ("GET", "HEAD"):
            return _send(connection, 405)
        if words[1].partition("?")[0] != "/metrics" or self._view is None:
            return _send(connection, 404)
        text = render_metrics(self._release, self._view)
        return _send(connection, 200, text, CONTENT_TYPE, with_body=words[0] == "GET")


def _listen(host: str, port: int) -> socket.socket:
    if host:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        # A machine without IPv6.
        return socket.create_server(("", port))


def _read_request_line(connection: socket.socket) -> str:
    """Return the first line of a request; empty for one that is too slow or too long."""
    deadline = time.monotonic() + _REQUEST_SECONDS
    request = b""
    while b"\r\n\r\n" not in request:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or len(request) > _REQUEST_BYTES:
            return ""
        connection.settimeout(remaining)
        try:
            chunk = connection.recv(4096)
        except socket.timeout:
            return ""
        if not chunk:
            break
        request += chunk
    return request.decode("latin-1").partition("\r\n")[0]


def _send(
    connection: socket.socket, code: int, body: str = "", content_type: str = "text/plain", with_body: bool = True
) -> None:
    content = (body or _REASONS[code] + "\n").encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    connection.settimeout(_REQUEST_SECONDS)
    connection.sendall(head.encode() + (content if with_body else b""))
