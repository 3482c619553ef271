"""Time limits of a server's connections, so that clients that send or read nothing cannot block others.

For uvicorn's protocols, which limit only the silence after an answer: a class that inherits from TimedConnection and
from one of them. Answers themselves, event streams too, have no limit as long as the client reads them.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple, Optional, Set, Tuple


class ConnectionLimits(NamedTuple):
    """What one client, and all together, may hold."""

    connections: int
    """Above this, a new connection replaces the one that has kept the server waiting longest."""
    head_seconds: float = 10.0
    """From the connection, or the last answer, to the end of a request's headers."""
    body_seconds: float = 30.0
    """From there to the end of its body."""
    read_seconds: float = 30.0
    """In which the client reads something of what waits to be sent."""


_HEAD, _BODY, _READ = "head", "body", "read"
_Phase = Tuple[str, object]


class TimedConnection(asyncio.Protocol):
    """One connection, in front of a protocol of uvicorn's, which sets the attributes and calls these methods."""

    limits: ConnectionLimits
    loop: asyncio.AbstractEventLoop
    transport: Any
    connections: Set[Any]
    """All of the server's."""
    cycle: Any
    """The newest request and its answer."""
    pipeline: Any = ()
    """Requests behind the one that is being answered."""
    _phase: Optional[_Phase] = None
    """What the server waits for, and after which request."""
    _timer: Optional[asyncio.TimerHandle] = None
    _since = 0.0
    _unread = 0
    _is_reading_slowly = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self.connections) >= self.limits.connections:
            self._make_room()
        self._watch()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._is_reading_slowly = True
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._is_reading_slowly = False
        self._watch()

    def on_response_complete(self) -> None:
        """Note that an answer is complete, although it may not be sent yet."""
        super().on_response_complete()  # type: ignore[misc]
        self._watch()

    def _find_phase(self) -> Optional[_Phase]:
        if self._is_reading_slowly:
            return _READ, None
        if self.cycle is None or self.cycle.response_complete:
            return (_READ if self.transport.get_write_buffer_size() else _HEAD), self.cycle
        return (_BODY, self.cycle) if self.cycle.more_body and not self.pipeline else None

    def _watch(self) -> None:
        """Limit the time of what the server waits for now; what comes in pieces has one limit together."""
        phase = self._find_phase()
        # A connection that is being closed still waits until the client has read all.
        if phase == self._phase or (self.transport.is_closing() and self._timer is not None):
            return
        self._stop_timer()
        self._phase = phase
        if phase is not None:
            self._since = self.loop.time()
            self._start_timer(phase[0])

    def _start_timer(self, name: str) -> None:
        limits = self.limits
        seconds = {_HEAD: limits.head_seconds, _BODY: limits.body_seconds, _READ: limits.read_seconds}[name]
        self._unread = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        is_reading = self._phase is not None and self._phase[0] == _READ
        if is_reading and self.transport.get_write_buffer_size() < self._unread:
            self._start_timer(_READ)
        else:
            self._end()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._phase = None

    def _end(self) -> None:
        self._stop_timer()
        # Not close: it would wait for a client that does not read.
        self.transport.abort()

    def _make_room(self) -> None:
        """End the connection whose time limit has run for longest."""
        waiting = [each for each in self.connections if each._timer is not None]
        if waiting:
            min(waiting, key=lambda each: each._since)._end()
