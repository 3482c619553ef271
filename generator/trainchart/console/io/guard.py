"""What every request passes before it reaches a page: the Host header, the session and, for changes, origin and token.

Who gets a session is the door's to say: code_door.py and token_door.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainchart.console.access import BODY_LIMIT, HEADERS, VALUES_LIMIT, is_same, name_of, refuse_host, refuse_origin
from trainchart.console.pages import Pages

_VALUES = 200
"""Fields of a form with the values of a chart."""
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"


class Opened(Protocol):
    """What one user sees."""

    @property
    def token(self) -> str:
        """Of the forms on its pages."""

    @property
    def app(self) -> ASGIApp:
        """Answers what has passed."""


class Door(Protocol):
    """Decides who gets in, and knows them again."""

    origins: Collection[str]
    """Where browsers reach the console."""
    form_limit: int
    """Bytes of the form that signs in."""

    async def sign_in(self, request: Request) -> Response:
        """Return the answer to the form that signs in, which nothing but the Host header was checked of."""

    async def find(self, request: Request) -> Opened | Response:
        """Return what the user of a request sees, or the answer where there is no session."""

    async def sign_out(self, request: Request, opened: Opened) -> Response:
        """End the session of a request."""

    def hold(self, opened: Opened) -> AbstractContextManager[None]:
        """Return what is entered as long as a request is answered."""


class Guard:
    """The whole application: refuses what may not pass, and adds the headers of access.py to every answer."""

    def __init__(self, door: Door, pages: Pages, static: Mapping[str, bytes]) -> None:
        self._door, self._pages, self._static = door, pages, static
        self._names = frozenset(map(name_of, door.origins))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        request = Request(scope, receive)
        try:
            found = await self._pass(request)
        except (_TooLarge, ClientDisconnect):
            found = Response(status_code=413)
        if isinstance(found, Response):
            await found(scope, receive, send_with_headers)
            return
        with self._door.hold(found):
            await found.app(scope, receive, send_with_headers)

    async def _pass(self, request: Request) -> Opened | Response:
        """Return what the user of a request sees, or the answer to one that does not pass."""
        if refusal := refuse_host(request.headers.get("host", ""), self._names):
            return self._refuse("Wrong address", refusal, 421)
        path, changes = request.url.path, request.method not in ("GET", "HEAD")
        request.scope["form"] = await self._read_form(request) if changes else {}
        if path.startswith("/static/") and not changes:
            return self._send_static(path.removeprefix("/static/"))
        if path == SIGN_IN and request.method == "POST":
            return await self._door.sign_in(request)
        found = await self._door.find(request)
        if isinstance(found, Response) or not changes:
            return found
        if refusal := refuse_origin(request.headers, self._door.origins):
            return self._refuse("Refused", refusal, 403)
        if not is_same(request.scope["form"].get("token", ""), found.token):
            return self._refuse("Refused", "The console has been restarted: reload the page.", 403)
        return await self._door.sign_out(request, found) if path == SIGN_OUT else found

    async def _read_form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form, which is small and has each once. Raises _TooLarge."""
        path, size, count = request.url.path, BODY_LIMIT, 20
        if path.startswith("/new/"):
            size, count = VALUES_LIMIT, _VALUES
        elif path == SIGN_IN:
            size = self._door.form_limit
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > size:
                raise _TooLarge
        try:
            fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=count)
        except ValueError as error:
            raise _TooLarge from error
        return {name: values[0] for name, values in fields.items()}

    def _send_static(self, path: str) -> Response:
        kind = _TYPES.get(path.rpartition(".")[2])
        if path not in self._static or kind is None:
            return Response(status_code=404)
        return Response(self._static[path], media_type=kind)

    def _refuse(self, title: str, message: str, status: int) -> Response:
        return HTMLResponse(self._pages.refusal(title, message), status)


class _TooLarge(Exception):
    pass


def name_cookie(request: Request, origins: Collection[str]) -> tuple[str, bool]:
    """Return the name of the session's cookie at the address of a request, and whether it is for https alone.

    No other site of the same domain can set one of that name there.
    """
    name = request.headers.get("host", "").lower()
    is_secure = f"https://{name}" in origins
    return f"{'__Host-' if is_secure else ''}trainchart-{name.rpartition(':')[2]}", is_secure
