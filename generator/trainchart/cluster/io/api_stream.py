"""A connection that an API server has upgraded from HTTP: bytes both ways."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainchart.errors import Unreachable

_BLOCK = 256 * 1024
_WRITE_SECONDS = 20.0
_TEXT_LIMIT = 300
_HINT = "check the network, and whether a proxy in front of the API server cuts WebSocket connections"


@dataclass(frozen=True)
class ApiStream:
    """Reads and writes; whatever goes wrong below leaves here as Unreachable."""

    stream: Any
    """The network stream of the HTTP library."""
    end: Callable[[], None]
    where: str
    """What cannot be done when it fails, for messages."""

    def read(self, seconds: float) -> bytes:
        """Return the next bytes; none at the end. Raises Unreachable where none come in time."""
        try:
            return bytes(self.stream.read(_BLOCK, timeout=seconds))
        # Of the library below the HTTP library, which translates nothing here.
        except Exception as error:
            raise self._convert(error) from error

    def write(self, data: bytes) -> None:
        """Send bytes. Raises Unreachable."""
        try:
            self.stream.write(data, timeout=_WRITE_SECONDS)
        except Exception as error:
            raise self._convert(error) from error

    @property
    def socket(self) -> socket.socket:
        """The socket below, to wait at; its bytes may be encrypted."""
        found: socket.socket = self.stream.get_extra_info("socket")
        return found

    def holds_bytes(self) -> bool:
        """Return whether bytes have left the socket already, and wait decrypted."""
        encryption = self.stream.get_extra_info("ssl_object")
        return encryption is not None and encryption.pending() > 0

    def close(self) -> None:
        self.end()

    def _convert(self, error: Exception) -> Unreachable:
        word = " ".join(str(error).split())[:_TEXT_LIMIT] or type(error).__name__
        return Unreachable(f"{self.where}: {word}", hint=_HINT)
