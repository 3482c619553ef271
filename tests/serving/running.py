"""A model server in a thread of the tests' process, on ports of its own, and how to ask it over REST."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainchart_serving.server import Addresses, serve
from trainchart_serving.settings import parse_settings

NAME = "half"


def wait_until(is_true: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Return once it is so; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.02)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> str:
        told = self.json
        assert list(told) == ["error"]
        return str(told["error"])


class Running:
    """A server that runs until it is stopped."""

    def __init__(self, base: Path, *flags: str) -> None:
        always = ("--host=127.0.0.1", "--rest_api_port=0", "--port=0", "--drain_delay_seconds=0")
        quick = "--file_system_poll_wait_seconds=0.1"
        flags = (f"--model_name={NAME}", f"--model_base_path={base}", *always, quick, *flags)
        self._settings = parse_settings(flags)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(30)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        await serve(self._settings, self._stopping, self._listen)

    def _listen(self, addresses: Addresses) -> None:
        self.rest, self.grpc = addresses.rest, addresses.grpc
        self._ready.set()

    def begin_stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.begin_stop()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.rest, timeout=30)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()

    def post(self, verb: str, body: object, version: str = "") -> Answer:
        return self.ask("POST", f"/v1/models/{NAME}{version}:{verb}", body)

    def wait_ready(self) -> None:
        wait_until(lambda: self.ask("GET", "/readyz").status == 200, "the model answers")


@contextmanager
def running(base: Path, *flags: str, is_ready: bool = True) -> Iterator[Running]:
    server = Running(base, *flags)
    try:
        if is_ready:
            server.wait_ready()
        yield server
    finally:
        server.stop()
