"""Answer GET requests for a few pages, read-only and within bounds: one thread, small requests, short waits.

For launcher and run controller. Not http.server: importing it costs
30 ms and 7 MB in every pod, and it has no limit on the time of a whole request. Clients are served as they become
ready, so that slow ones hold up no other; of too many, the oldest is dropped.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

Page = Tuple[str, Callable[[str], Optional[str]]]
"""Content type, and what renders the body from the query; None where the query makes no sense."""


class Guard(NamedTuple):
    """Pages that only those who know a key may read, and any client in the pod itself, as kubectl exec does."""

    paths: Sequence[str] = ()
    key: str = ""
    """Expected as `Authorization: Bearer KEY`; without one, all pages are open."""


OPEN = Guard()

_REQUEST_SECONDS = 2.0
_REQUEST_BYTES = 8192
_CLIENTS = 64
"""That are connected at the same time."""
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
}


def serve_pages(host: str, port: int, pages: Mapping[str, Page], guard: Guard = OPEN) -> None:
    """Serve `pages` by path in the background; "" as host means every address. Raises OSError for a taken port."""
    server = _Server(_listen(host, port), pages, guard)
    threading.Thread(target=server.run, daemon=True, name="pages").start()


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


class _Client:
    """One connection: a request that comes in, then an answer that goes out."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self.deadline = time.monotonic() + _REQUEST_SECONDS
        self.request = b""
        self.answer: Optional[memoryview] = None
        """What is left to send; None until the request is complete."""


class _Server:
    def __init__(self, listener: socket.socket, pages: Mapping[str, Page], guard: Guard) -> None:
        self._listener = listener
        self._pages = pages
        self._guard = guard
        self._clients: Dict[socket.socket, _Client] = {}
        """In the order in which they came."""
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        while True:
            for key, _ in self._selector.select(_REQUEST_SECONDS if self._clients else None):
                client = self._clients.get(key.fileobj)  # type: ignore[call-overload]
                if key.fileobj is self._listener:
                    self._accept()
                elif client is not None:
                    self._go_on(client)
            now = time.monotonic()
            for client in [each for each in self._clients.values() if now >= each.deadline]:
                self._give_up(client)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:
            # Out of file descriptors, or the client is gone already.
            time.sleep(0.1)
            return
        while len(self._clients) >= _CLIENTS:
            self._drop(next(iter(self._clients.values())))
        connection.setblocking(False)
        self._clients[connection] = _Client(connection, str(address[0]))
        self._selector.register(connection, selectors.EVENT_READ)

    def _go_on(self, client: _Client) -> None:
        """Read or write what is possible now."""
        try:
            if client.answer is None:
                chunk = client.connection.recv(4096)
                client.request += chunk
                if not chunk or _is_whole(client.request):
                    self._reply(client, _answer(client.request, self._pages, self._guard, client.address))
            else:
                client.answer = client.answer[client.connection.send(client.answer) :]
                if not client.answer:
                    self._drop(client)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._drop(client)

    def _give_up(self, client: _Client) -> None:
        """Tell a client that was too slow with its request that it was none; one that reads too slowly is dropped."""
        if client.answer is None:
            self._reply(client, _dump(400))
        else:
            self._drop(client)

    def _reply(self, client: _Client, answer: bytes) -> None:
        client.answer = memoryview(answer)
        client.deadline = time.monotonic() + _REQUEST_SECONDS
        self._selector.modify(client.connection, selectors.EVENT_WRITE)

    def _drop(self, client: _Client) -> None:
        self._selector.unregister(client.connection)
        del self._clients[client.connection]
        client.connection.close()


def _is_whole(request: bytes) -> bool:
    """Say whether no more of a request is worth reading."""
    return b"\r\n\r\n" in request or b"\n\n" in request or len(request) > _REQUEST_BYTES


def _is_allowed(request: bytes, guard: Guard, address: str) -> bool:
    """Say whether a guarded page is shown to a request from `address`."""
    if not guard.key or address == "::1" or address.startswith(("127.", "::ffff:127.")):
        return True
    given = b""
    for line in request.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"authorization":
            given = value.strip()
    expected = f"Bearer {guard.key}".encode()
    # Every byte is compared, so that the time of the answer says nothing about the key.
    differences = sum(one ^ other for one, other in zip(given, expected))
    return len(given) == len(expected) and differences == 0


def _answer(request: bytes, pages: Mapping[str, Page], guard: Guard = OPEN, address: str = "") -> bytes:
    request_line = request.split(b"\r\n", 1)[0].split(b"\n", 1)[0]
    words = request_line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/") or len(request) > _REQUEST_BYTES:
        return _dump(400)
    method, target, _ = words
    if method not in ("GET", "HEAD"):
        return _dump(405)
    path, _, query = target.partition("?")
    if path not in pages:
        return _dump(404)
    if path in guard.paths and not _is_allowed(request, guard, address):
        return _dump(401)
    content_type, render = pages[path]
    try:
        body = render(query)
    except Exception:  # A page that cannot be made must not end the thread that serves the others.
        return _dump(500)
    return _dump(400) if body is None else _dump(200, body, content_type, with_body=method == "GET")


def _dump(code: int, body: Optional[str] = None, content_type: str = "text/plain", with_body: bool = True) -> bytes:
    content = (_REASONS[code] + "\n" if body is None else body).encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: {content_type}; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (content if with_body else b"")
