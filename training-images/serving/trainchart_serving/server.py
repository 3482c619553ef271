"""A server from its start to its end: both ports, the watch over versions, and the drain after SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trainchart_runtime.io.connections import ConnectionLimits, TimedConnection
from trainchart_serving.batching import Batcher
from trainchart_serving.grpc_api import GrpcApi
from trainchart_serving.live import LiveModel
from trainchart_serving.metrics import Metrics
from trainchart_serving.predictor import Predictor
from trainchart_serving.rest import RestApi
from trainchart_serving.settings import Settings

log = logging.getLogger(__name__)

_BACKLOG = 2048
_KEEP_ALIVE_SECONDS = 75
"""Longer than the pause that proxies leave between two requests, so that they close connections, and not the server."""


_HEAD_SECONDS = _KEEP_ALIVE_SECONDS + 5.0
_HEAD_LIMIT = 64 * 1024
"""Bytes of a request's headers."""
_ANSWER_SECONDS = 10.0
_MOST_CONNECTIONS = 10_000


_HEAD_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json\r\nContent-Length: 49\r\n"
    b'Connection: close\r\n\r\n{"error": "the request\'s headers exceed 64 KiB."}'
)


@dataclass(frozen=True)
class Addresses:
    """Where the server listens."""

    rest: str
    grpc: str


class _Connection(TimedConnection, HttpToolsProtocol):
    """Ends where the headers of a request, or the trailers of its body, exceed _HEAD_LIMIT bytes.

    The parser takes them without end, and keeps them all.
    """

    _head_bytes = 0
    """Received since the last part of a body, or the end of headers or of a request."""

    def data_received(self, data: bytes) -> None:
        start = 0
        while start < len(data) and not self.transport.is_closing():
            piece = data[start : start + _HEAD_LIMIT - self._head_bytes]
            start += len(piece)
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes >= _HEAD_LIMIT:
                self._refuse()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._head_bytes = 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head_bytes = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head_bytes = 0

    def _refuse(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_HEAD_TOO_LONG)
            self.transport.close()
        else:
            self.transport.abort()  # An answer to an earlier request is on its way, and may not be mixed with this one.


class _RestServer(uvicorn.Server):
    """Leaves signals to the program: the drain begins before the port is closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(
    settings: Settings, stopping: asyncio.Event, listening: Callable[[Addresses], None] = lambda addresses: None
) -> None:
    """Serve until `stopping` is set, then drain. Raises OSError for a port that cannot be used."""
    live = LiveModel(
        settings.model_name, settings.model_base_path, settings.policy, batch_examples=settings.batches.max_examples
    )
    metrics = Metrics(live)
    batcher = Batcher(settings.batches, metrics.observe_call)
    metrics.queued.set_function(lambda: batcher.waiting)
    predictor = Predictor(live, batcher)
    rest_socket = _bind(settings.host, settings.rest_port)
    rest = _RestServer(_configure(RestApi(predictor, metrics, settings.limits), settings))
    grpc_api = GrpcApi(predictor, metrics, settings)
    grpc_port = await grpc_api.start()
    rest_task = asyncio.create_task(rest.serve([rest_socket]))
    watch_task = asyncio.create_task(live.watch(settings.poll_seconds))
    listening(Addresses(f"{settings.host}:{rest_socket.getsockname()[1]}", f"{settings.host}:{grpc_port}"))
    health_task = asyncio.create_task(grpc_api.watch_health())
    stop_task = asyncio.create_task(stopping.wait())
    await asyncio.wait([stop_task, rest_task, watch_task], return_when=asyncio.FIRST_COMPLETED)
    predictor.is_draining = True
    await grpc_api.announce_end()
    log.info("draining: not ready any more, accepting requests for %g s", settings.drain_delay_seconds)
    await asyncio.sleep(settings.drain_delay_seconds)
    rest.should_exit = True
    await asyncio.gather(rest_task, grpc_api.stop(settings.drain_seconds))
    for task in (watch_task, health_task, stop_task):
        task.cancel()
    await asyncio.gather(watch_task, health_task, stop_task, return_exceptions=True)
    batcher.close()
    await live.close()
    log.info("drained: all requests have ended")


def _configure(api: RestApi, settings: Settings) -> uvicorn.Config:
    class Connection(_Connection):
        pass

    # The application answers a body that takes too long; this ends connections that send one to what reads none.
    body_seconds = settings.limits.seconds + _ANSWER_SECONDS
    Connection.limits = ConnectionLimits(_count_connections(), _HEAD_SECONDS, body_seconds)
    return uvicorn.Config(
        api.app,
        http=Connection,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )


def _count_connections() -> int:
    """Return how many REST connections are allowed: half of the open-file limit, which is raised to its maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Container runtimes set 1024, for programs that use select.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(_MOST_CONNECTIONS, soft // 2))


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only where it sees the protocol: else each answer takes 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)  # from now on a client waits, and is not refused
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"cannot listen at {host}:{port}: {error.strerror}") from error
    bound.setblocking(False)
    return bound
