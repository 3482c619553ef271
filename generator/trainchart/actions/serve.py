"""The use case `trainchart serve`: the model server, on this machine, for the export of a run or of a chart."""

from __future__ import annotations

import json
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from trainchart.actions.support.served_model import (
    ServedModel,
    ServeRequest,
    advise_on_problem,
    copy_model,
    find_model,
)
from trainchart.errors import ChecksFailed, ToolError, UsageError
from trainchart.host.python_server import HOST, require_free
from trainchart.local.io.processes import Guardian
from trainchart.local.plan import POD_MARK
from trainchart.serving.io.rest_client import ModelClient, NoAnswer, Reply
from trainchart.serving.io.server_process import ServerProcess, require_installed
from trainchart.serving.signature import DEFAULT_SIGNATURE, Signature, count_values, make_zeros, parse_metadata
from trainchart.stop_signals import StopRequests

_TICK_SECONDS = 0.1
_ANSWER_SECONDS = 30.0
_PATIENCE_SECONDS = 15.0
"""After which a user wants to know that it goes on; twice as long for the next time."""
_SHORT = 600
"""Characters of an example that is shown in a command; a larger one is a file."""
_MOST_VALUES = 1_000_000
"""Of an example."""
_LONGEST_LINE = 300
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Ports:
    """Where the server listens; 0 for any that is free."""

    rest: int = 8501
    grpc: int = 8500


@dataclass(frozen=True)
class Example:
    """A request of zeros, which the model has answered or refused."""

    body: str
    file: str = ""
    """Where the body lies, if it is too long for a command; there while the server runs."""
    refusal: str = ""
    """What the model says against it; empty where it has answered."""


@dataclass(frozen=True)
class ReadyServer:
    """A server whose model answers."""

    model: ServedModel
    url: str
    grpc: str
    signatures: Mapping[str, Signature]
    signature: Signature
    """The one that answers where a request names none; of a model without, the first one."""
    example: Example | None
    """None where JSON cannot hold one."""
    seconds: float

    @property
    def predict_url(self) -> str:
        return f"{self.url}/v1/models/{self.model.name}:predict"


class ServeObserver(Protocol):
    """Shows what happens."""

    def show_event(self, text: str) -> None: ...

    def show_line(self, line: str) -> None: ...

    def show_ready(self, ready: ReadyServer) -> None: ...


def serve_model(request: ServeRequest, ports: Ports, observer: ServeObserver) -> int:
    """Serve until a signal ends it, and return the signal's number. Call it from the main thread.

    Whatever happens, the server does not outlive this call, nor the death of the calling process.

    Raises:
        ToolError: the extra is not installed, a port is taken, the model is not there, or the server ended by itself.
        ChecksFailed: the export is damaged, or cannot be loaded.
    """
    if ports.rest and ports.rest == ports.grpc:
        raise UsageError(f"--grpc-port: {ports.grpc} is the port of REST", hint="choose another one, or 0 for any")
    require_installed()
    model = find_model(request)
    require_free(ports.rest, "--port")
    require_free(ports.grpc, "--grpc-port")
    for note in model.notes:
        observer.show_event(f"note: {note}")
    with tempfile.TemporaryDirectory(prefix="trainchart-serve-") as made:
        folder = Path(made).absolute()  # TMPDIR may be relative, and the server starts elsewhere
        observer.show_event(f"copying {model.source}")
        copy_model(model, folder / "model" / str(model.version))
        observer.show_event(f"loading {model.origin} as {model.name}, version {model.version}")
        with _catch_signals() as signals:
            return _run_server(model, ports, observer, signals, folder)


def _run_server(model: ServedModel, ports: Ports, observer: ServeObserver, signals: list[int], folder: Path) -> int:
    mark = f"serve-{os.getpid()}-{secrets.token_hex(4)}"
    guardian = Guardian(mark, os.environ)
    try:
        arguments = [*_make_arguments(model, ports, folder / "model")]
        server = ServerProcess(arguments, {**(model.environment or {}), POD_MARK: mark})
        try:
            guardian.watch(server.pid)
            return _Watch(model, server, observer, signals, folder).run()
        finally:
            server.kill()
    finally:
        guardian.close()


@contextmanager
def _catch_signals() -> Iterator[list[int]]:
    """Give a list that grows with each signal that asks for the end."""
    caught: list[int] = []
    requests = StopRequests()

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        if requests.is_new(time.monotonic()):
            caught.append(number)

    # nohup ignores the end of the terminal.
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _make_arguments(model: ServedModel, ports: Ports, base: Path) -> Iterator[str]:
    yield f"--model_name={model.name}"
    yield f"--model_base_path={base}"
    yield f"--version={model.version}"
    if model.content:
        yield f"--content={model.version}={model.content}"
    yield f"--host={HOST}"
    yield f"--rest_api_port={ports.rest}"
    yield f"--port={ports.grpc}"
    # No load balancer must notice first.
    yield "--drain_delay_seconds=0"
    yield from model.arguments


@dataclass
class _Watch:
    """Follows a server from its start to its end."""

    model: ServedModel
    server: ServerProcess
    observer: ServeObserver
    signals: list[int]
    folder: Path
    _started_at: float = field(default_factory=time.monotonic)
    _is_ready: bool = False
    _signals_seen: int = 0
    _patience_seconds: float = _PATIENCE_SECONDS

    def run(self) -> int:
        while (code := self.server.wait(_TICK_SECONDS)) is None:
            self._show_lines()
            self._heed_signals()
            if not self._is_ready and not self.signals:
                self._tell_of_waiting()
                if self.server.address:
                    self._look()
        self._show_lines()
        if self.signals:
            return self.signals[0]
        raise _explain_end(code, tuple(self.server.last_lines))

    def _tell_of_waiting(self) -> None:
        waited = time.monotonic() - self._started_at
        if waited >= self._patience_seconds:
            self._patience_seconds *= 2
            self.observer.show_event(f"still loading after {waited:.0f} s")

    def _show_lines(self) -> None:
        for line in self.server.take_lines():
            self.observer.show_line(line)

    def _heed_signals(self) -> None:
        seen, self._signals_seen = self._signals_seen, len(self.signals)
        if self._signals_seen == seen:
            return
        if seen:
            self.server.kill()
        else:
            self.observer.show_event("draining: finishing requests in flight; Ctrl-C again ends the server immediately")
            self.server.terminate()

    def _look(self) -> None:
        """Show the server once its model answers. Raises ChecksFailed where it never will."""
        client = ModelClient(f"http://{self.server.address}", _ANSWER_SECONDS)
        try:
            if client.ask("GET", "/readyz").is_done:
                self._is_ready = True
                self.observer.show_ready(self._describe(client))
                return
            problem = _find_problem(client.read_model(self.model.name))
        except NoAnswer:
            return  # it has not begun, or has just ended
        if problem:
            raise ChecksFailed(
                f"{self.model.origin} is not served: {problem}", hint=advise_on_problem(self.model, problem)
            )

    def _describe(self, client: ModelClient) -> ReadyServer:
        reply = client.read_model(self.model.name, "metadata")
        try:
            signatures = parse_metadata(reply.parse())
        except ValueError as error:
            raise ToolError(f"the metadata of the model cannot be read: {error}") from error
        signature = signatures.get(DEFAULT_SIGNATURE) or next(iter(signatures.values()))
        return ReadyServer(
            model=self.model,
            url=client.url,
            grpc=self.server.grpc_address,
            signatures=signatures,
            signature=signature,
            example=_try_zeros(signature, self.model.name, client, self.folder / "example.json"),
            seconds=time.monotonic() - self._started_at,
        )


def _explain_end(code: int, lines: tuple[str, ...]) -> ToolError:
    """Return the error about a server that has ended by itself."""
    if code == -signal.SIGKILL:
        return ToolError("the model server was killed", hint="this machine may have too little memory for the model")
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    last = next((line.strip()[:_LONGEST_LINE] for line in reversed(lines) if line.strip()), "it printed nothing")
    return ToolError(f"the model server {how}: {last}", hint="see its output above; --verbose shows all of it")


def _find_problem(reply: Reply) -> str:
    """Return why the server has given up on the version; empty while it has not."""
    document: Any = reply.document
    with suppress(KeyError, TypeError, IndexError):
        status = document["model_version_status"][0]
        if status["state"] == "END":
            return " ".join(str(status["status"]["error_message"]).split())
    return ""


def _try_zeros(signature: Signature, model: str, client: ModelClient, file: Path) -> Example | None:
    """Ask the model for a request of zeros, so that what is shown as an example works."""
    zeros = make_zeros(signature) if count_values(signature) <= _MOST_VALUES else None
    if zeros is None:
        return None
    body = json.dumps(zeros, separators=(",", ":"))
    reply = client.predict(model, body.encode())
    refusal = "" if reply.is_done else reply.error or f"status {reply.status}"
    if len(body) <= _SHORT:
        return Example(body, refusal=refusal)
    file.write_text(body)
    return Example(body, str(file), refusal)
