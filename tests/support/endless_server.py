"""A server on 127.0.0.1 whose answers have no end."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def serve_endless(start: bytes, more: bytes, *, pause_seconds: float = 0.05) -> Iterator[str]:
    """Give the address of a server that answers with `start`, and then with `more` again and again."""
    is_over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(start)
                while not is_over.wait(pause_seconds):
                    self.request.sendall(more)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            is_over.set()
            server.shutdown()
