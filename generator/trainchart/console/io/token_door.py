"""Lets in who has a Kubernetes token that the API server accepts, each into a console of their own.

The token comes with the form that signs in, or with every request from a proxy that has signed the user in. It is never
written into an address, a log or a page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from trainchart.console.access import TOKEN_LIMIT, read_token, refuse_origin
from trainchart.console.accounts import Account, OpenAccount
from trainchart.console.io.app import Console
from trainchart.console.io.feed import call_in_thread
from trainchart.console.io.guard import Opened, name_cookie
from trainchart.console.pages import Pages
from trainchart.errors import TrainchartError, Unauthorized

SESSIONS = 100
SESSIONS_OF_ONE = 5
"""Of one user: the one that was not used for longest ends for a new one."""
OPENED_AT_ONCE = 8
"""Tokens that the API server is asked about at the same time: any caller can send one."""
IDLE_SECONDS = 30 * 60.0
LIFE_SECONDS = 12 * 3600.0
_CHECK_SECONDS = 15.0
_NOT_ACCEPTED = "The cluster does not accept this token. It may have expired."
_NO_TOKEN = "This is not a Kubernetes token."
_FULL = "Too many users are signed in or signing in. Try again later."


class _Full(Exception):
    """There is no room for another session."""


@dataclass(eq=False)
class _Session:
    """One user in one browser, or behind a proxy."""

    account: Account
    console: Console
    key: bytes
    began_at: float = field(default_factory=time.monotonic)
    used_at: float = field(default_factory=time.monotonic)
    answering: int = 0
    """Requests that are being answered, streams too."""

    @property
    def token(self) -> str:
        """Of the forms on its pages."""
        return self.console.token

    @property
    def app(self) -> ASGIApp:
        """Answers its requests."""
        return self.console.app

    def is_over(self, now: float) -> bool:
        """Return whether its time has come."""
        is_idle = not self.answering and now - self.used_at > IDLE_SECONDS
        return is_idle or now - self.began_at > LIFE_SECONDS


class TokenDoor:
    """Sessions by the digest of their cookie, or of the token that a proxy sends."""

    form_limit = 4 * TOKEN_LIMIT

    def __init__(self, open_account: OpenAccount, pages: Pages, origins: Collection[str]) -> None:
        self._open_account, self._pages = open_account, pages
        self.origins = origins
        self._sessions: dict[bytes, _Session] = {}
        self._opening: dict[bytes, asyncio.Task[_Session]] = {}
        self._watch: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self._end(session)

    async def sign_in(self, request: Request) -> Response:
        if refusal := refuse_origin(request.headers, self.origins):
            # Else a page of another site could sign a user in as someone else.
            return self._ask(refusal, 403)
        token = read_token(request.scope["form"].get("bearer", ""))
        cookie = secrets.token_urlsafe(32)
        found = await self._open(token, _digest("cookie", cookie))
        if isinstance(found, Response):
            return found
        response = HTMLResponse(self._pages.signed_in())
        name, is_secure = name_cookie(request, self.origins)
        if before := self._sessions.get(_digest("cookie", request.cookies.get(name, ""))):
            self._end(before)
        response.set_cookie(name, cookie, httponly=True, samesite="strict", secure=is_secure)
        return response

    async def find(self, request: Request) -> Opened | Response:
        if "authorization" in request.headers:
            token = _read_bearer(request.headers["authorization"])
            key = _digest("token", token)
            return self._sessions.get(key) or await self._open(token, key)
        name, _ = name_cookie(request, self.origins)
        return self._sessions.get(_digest("cookie", request.cookies.get(name, ""))) or self._ask("", 401)

    async def sign_out(self, request: Request, opened: Opened) -> Response:
        if isinstance(opened, _Session):
            self._end(opened)
        name, is_secure = name_cookie(request, self.origins)
        response = RedirectResponse("/", 303)
        response.delete_cookie(name, httponly=True, samesite="strict", secure=is_secure)
        return response

    @contextmanager
    def hold(self, opened: Opened) -> Iterator[None]:
        assert isinstance(opened, _Session)
        opened.used_at = time.monotonic()
        opened.answering += 1
        try:
            yield
        finally:
            opened.answering -= 1
            opened.used_at = time.monotonic()

    async def _open(self, token: str, key: bytes) -> _Session | Response:
        """Return a new session, or what to answer where there is none."""
        if not token:
            return self._ask(_NO_TOKEN, 401)
        if key not in self._opening:
            if len(self._opening) >= OPENED_AT_ONCE:
                return self._ask(_FULL, 503)
            self._opening[key] = asyncio.create_task(self._begin(token, key))
        try:
            # A browser that goes away must not end it for another request with the same token.
            return await asyncio.shield(self._opening[key])
        except Unauthorized:
            return self._ask(_NOT_ACCEPTED, 401)
        except _Full:
            return self._ask(_FULL, 503)
        except TrainchartError as error:
            return self._ask(error.message, 502)

    async def _begin(self, token: str, key: bytes) -> _Session:
        try:
            account = await call_in_thread(lambda: self._open_account(token))
        finally:
            del self._opening[key]
        of_user = [each for each in self._sessions.values() if each.account.user == account.user]
        if len(of_user) >= SESSIONS_OF_ONE:
            self._end(min(of_user, key=lambda each: each.used_at))
        if len(self._sessions) >= SESSIONS:
            account.close()
            raise _Full
        console = Console(account.source, self._pages, account.open_installer)
        session = self._sessions[key] = _Session(account, console, key)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_sessions())
        return session

    async def _watch_sessions(self) -> None:
        """End sessions whose time has come, and those whose token is not accepted any more."""
        while self._sessions:
            await asyncio.sleep(_CHECK_SECONDS)
            await asyncio.gather(*(self._check(session) for session in list(self._sessions.values())))

    async def _check(self, session: _Session) -> None:
        if session.is_over(time.monotonic()):
            self._end(session)
            return
        # Where the API server cannot be asked, the pages say so.
        with contextlib.suppress(TrainchartError):
            try:
                await call_in_thread(session.account.check)
            except Unauthorized:
                self._end(session)

    def _end(self, session: _Session) -> None:
        if self._sessions.pop(session.key, None) is not None:
            session.console.close()
            session.account.close()

    def _ask(self, message: str, status: int) -> Response:
        return HTMLResponse(self._pages.sign_in(message), status)


def _digest(kind: str, secret: str) -> bytes:
    """Return what a session is found by: how long a search takes says nothing about the secret."""
    return hashlib.sha256(f"{kind} {secret}".encode()).digest()


def _read_bearer(header: str) -> str:
    scheme, _, token = header.partition(" ")
    return read_token(token) if scheme.lower() == "bearer" else ""
