"""Runs the console's server until a signal ends it: for the user of this machine, or for users with tokens."""

from __future__ import annotations

import asyncio
import contextlib
import html
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainchart.console.access import list_names
from trainchart.console.accounts import OpenAccount
from trainchart.console.io.app import Console
from trainchart.console.io.code_door import CodeDoor
from trainchart.console.io.guard import Guard
from trainchart.console.io.token_door import TokenDoor
from trainchart.console.pages import Pages
from trainchart.errors import ToolError
from trainchart.host.browser import open_in_browser
from trainchart_runtime.io.connections import ConnectionLimits, TimedConnection

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LIMITS = ConnectionLimits(200)
_LIMITS_OF_USERS = ConnectionLimits(1000)
_OPENER = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>trainchart console</title>
<form method="post" action="http://{name}/sign-in"><input type="hidden" name="code" value="{code}">
<button>Open the trainchart console</button></form>
<script>document.forms[0].submit()</script></html>
"""


def serve_console(
    console: Console,
    pages: Pages,
    static: Mapping[str, bytes],
    host: str,
    port: int,
    *,
    opens_browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve the user of this machine until SIGINT or SIGTERM; `tell` gets the address and the code.

    Raises:
        ToolError: nothing can listen there.
    """
    with _listen(host, port) as listener:
        names = list_names(host, listener.getsockname()[1])
        code = secrets.token_urlsafe(18)
        door = CodeDoor(console, pages, tuple(f"http://{name}" for name in names), code)
        tell(f"console:  http://{names[0]}/\ncode:     {code}\nCtrl-C stops it.")
        with _write_opener(names[0], code) if opens_browser else contextlib.nullcontext() as opener:
            if opener is not None:
                open_in_browser(opener.as_uri())
            asyncio.run(_serve(Guard(door, pages, static), console.close, listener, _LIMITS))


def serve_users(
    open_account: OpenAccount,
    pages: Pages,
    static: Mapping[str, bytes],
    host: str,
    port: int,
    origins: Collection[str],
    *,
    tell: Callable[[str], None],
) -> None:
    """Serve users who sign in with their tokens until SIGINT or SIGTERM; `tell` gets the addresses.

    Raises:
        ToolError: nothing can listen there.
    """
    with _listen(host, port) as listener:
        door = TokenDoor(open_account, pages, origins)
        tell("".join(f"console:  {origin}/\n" for origin in origins) + "Ctrl-C stops it.")
        try:
            asyncio.run(_serve(Guard(door, pages, static), door.close, listener, _LIMITS_OF_USERS))
        finally:
            door.close()


@contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(128)
        except OSError as error:
            raise ToolError(
                f"cannot listen on {host}, port {port}: {error.strerror or error}",
                hint="choose another port with --port; 0 takes any free port",
            ) from error
        yield listener


async def _serve(app: Guard, close: Callable[[], None], listener: socket.socket, limits: ConnectionLimits) -> None:
    server = make_server(app, limits)

    def end() -> None:
        server.should_exit = True
        close()

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, end)
    await server.serve(sockets=[listener])


def make_server(app: ASGIApp, limits: ConnectionLimits) -> uvicorn.Server:
    """Return the server of an application, which leaves signals to its caller."""

    class Connection(TimedConnection, H11Protocol):
        pass

    Connection.limits = limits
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="error",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        ws="none",
        http=Connection,
        loop="asyncio",
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=2,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller: uvicorn raises them again at its end, before files are removed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _write_opener(name: str, code: str) -> Iterator[Path]:
    """Give a page that only this user can read, which signs in: arguments of processes and histories hold no code."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    with tempfile.TemporaryDirectory(
        prefix="trainchart-console-", dir=base if base and Path(base).is_dir() else None
    ) as made:
        page = Path(made, "open.html")
        page.touch(mode=0o600)
        page.write_text(_OPENER.format(name=html.escape(name), code=html.escape(code)))
        yield page
