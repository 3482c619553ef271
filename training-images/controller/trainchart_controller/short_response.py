"""Answers over HTTP of servers that may be hostile, bounded in size and time.

http.client takes a hundred headers of 64 KiB each, and any number of answers with status 100 before the real one. The
time-out of a socket is for each read of it: an answer that comes byte by byte would take hours.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import threading
from typing import Any, Optional

_HEAD_LIMIT = 8192
"""Bytes of the headers: usual ones have some hundreds, and Python needs half a minute for some of 240 KB."""
_GOOD = (b"HTTP/1.0 200 ", b"HTTP/1.1 200 ")
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class _ShortStream(io.RawIOBase):
    """The first bytes that come over a socket: _HEAD_LIMIT, and `body_limit` more after headers with status 200.

    After headers with another status it ends.
    """

    def __init__(self, connected: socket.socket, body_limit: int) -> None:
        self._whole = connected.makefile("rb", buffering=0)
        self._left = _HEAD_LIMIT
        self._body_limit = body_limit
        self._head: Optional[bytes] = b""
        """What has come of the headers; None once they have ended."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        if not self._left:
            return 0
        number = self._whole.readinto(memoryview(buffer)[: self._left])
        self._left -= number or 0
        if self._head is not None and number:
            self._head += bytes(memoryview(buffer)[:number])
            if _HEAD_END.search(self._head):
                # After a status such as 100, http.client reads further headers.
                self._left += self._body_limit if self._head.startswith(_GOOD) else -self._left
                self._head = None
        return number

    def close(self) -> None:
        # Else the socket stays open.
        self._whole.close()
        super().close()


class ShortResponse(http.client.HTTPResponse):
    """A response that ends early: its headers after 8 KiB, and its body with them."""

    body_limit = 0
    """Bytes of the body that may come after the headers of an answer with status 200."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_ShortStream(sock, self.body_limit))

    def begin(self) -> None:
        """Read the headers; http.client.HTTPException for any that cannot be read.

        http.client has Python's parser of e-mails read them, which ends on some with a TypeError of its own.
        """
        try:
            super().begin()
        except (OSError, http.client.HTTPException):
            raise
        except Exception as err:
            raise http.client.HTTPException("headers that cannot be read") from err


class Alarm:
    """Shuts a socket down when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket: Optional[socket.socket] = None
        self._timer: Optional[threading.Timer] = None
        self.has_rung = False

    def start(self, connected: socket.socket) -> None:
        """Shut this socket down in some seconds, unless the alarm is stopped before."""
        self.stop()
        # A socket of its own: TLS takes the descriptor away from the one that was connected.
        self._socket = connected.dup()
        self._timer = threading.Timer(self._seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._socket is not None:
            self._socket.close()
        self._timer = self._socket = None

    def _ring(self) -> None:
        self.has_rung = True
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The other side has ended it meanwhile.
