"""Answer GET requests for a few pages, read-only and within bounds: few threads, small requests, short waits.

The one acting module here, since launcher and run controller both have such pages. Not http.server: importing it costs
30 ms and 7 MB in every pod, and it has no limit on the time of a whole request.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Callable, Mapping, Optional, Tuple

Page = Tuple[str, Callable[[str], Optional[str]]]
"""Content type, and what renders the body from the query; None where the query makes no sense."""

_REQUEST_SECONDS = 2.0
_REQUEST_BYTES = 8192
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


def serve_pages(host: str, port: int, pages: Mapping[str, Page], threads: int = 2) -> None:
    """Serve `pages` by path in the background; "" as host means every address. Raises OSError for a taken port."""
    listener = _listen(host, port)
    for number in range(threads):
        threading.Thread(target=_serve, args=(listener, pages), daemon=True, name=f"pages-{number}").start()


def _listen(host: str, port: int) -> socket.socket:
    if host:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bind(family, address)
    try:
        return _bind(socket.AF_INET6, ("::", port))
    except OSError:
        # A machine without IPv6 cannot even bind it.
        return _bind(socket.AF_INET, ("0.0.0.0", port))


def _bind(family: int, address: Tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        listener.listen(16)
    except OSError:
        listener.close()
        raise
    return listener


def _serve(listener: socket.socket, pages: Mapping[str, Page]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            # Out of file descriptors, or the client is gone already.
            time.sleep(0.1)
            continue
        with connection:
            try:
                _answer(connection, pages)
            except OSError:
                pass


def _answer(connection: socket.socket, pages: Mapping[str, Page]) -> None:
    request_line = _read_request(connection).split(b"\r\n", 1)[0].split(b"\n", 1)[0]
    words = request_line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        return _send(connection, 400)
    method, target, _ = words
    if method not in ("GET", "HEAD"):
        return _send(connection, 405)
    path, _, query = target.partition("?")
    if path not in pages:
        return _send(connection, 404)
    content_type, render = pages[path]
    body = render(query)
    if body is None:
        return _send(connection, 400)
    return _send(connection, 200, body, content_type, with_body=method == "GET")


def _read_request(connection: socket.socket) -> bytes:
    """Read up to the empty line; whoever is too slow or too long gets what a broken request gets."""
    deadline = time.monotonic() + _REQUEST_SECONDS
    request = b""
    while b"\r\n\r\n" not in request and b"\n\n" not in request:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or len(request) > _REQUEST_BYTES:
            return b""
        connection.settimeout(remaining)
        try:
            chunk = connection.recv(4096)
        except socket.timeout:
            return b""
        if not chunk:
            return request
        request += chunk
    return request


def _send(
    connection: socket.socket,
    code: int,
    body: Optional[str] = None,
    content_type: str = "text/plain",
    with_body: bool = True,
) -> None:
    content = (_REASONS[code] + "\n" if body is None else body).encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {content_type}; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    connection.settimeout(_REQUEST_SECONDS)
    connection.sendall(head.encode() + (content if with_body else b""))
