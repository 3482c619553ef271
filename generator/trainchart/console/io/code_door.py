"""Lets in who knows the code that the terminal shows: the user of this machine, whose kubeconfig the console uses."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trainchart.console.access import BODY_LIMIT, is_same
from trainchart.console.io.guard import Opened, name_cookie
from trainchart.console.pages import Pages


class CodeDoor:
    """One session, which each browser with the code shares."""

    form_limit = BODY_LIMIT

    def __init__(self, opened: Opened, pages: Pages, origins: Collection[str], code: str) -> None:
        self._opened, self._pages, self._code = opened, pages, code
        self.origins = origins
        self._session = secrets.token_urlsafe(32)

    async def sign_in(self, request: Request) -> Response:
        # The code is the proof; the terminal's own page sends it from a file, without an origin.
        if not is_same(request.scope["form"].get("code", "").strip(), self._code):
            return HTMLResponse(self._pages.sign_in("This is not the code that the terminal shows."), 403)
        # No redirect: after a form of a file, which is another site, browsers would follow it without a strict cookie.
        response = HTMLResponse(self._pages.signed_in())
        name, is_secure = name_cookie(request, self.origins)
        response.set_cookie(name, self._session, httponly=True, samesite="strict", secure=is_secure)
        return response

    async def find(self, request: Request) -> Opened | Response:
        name, _ = name_cookie(request, self.origins)
        if is_same(request.cookies.get(name, ""), self._session):
            return self._opened
        return HTMLResponse(self._pages.sign_in(), 401)

    async def sign_out(self, request: Request, opened: Opened) -> Response:
        del opened
        self._session = secrets.token_urlsafe(32)
        name, is_secure = name_cookie(request, self.origins)
        response = RedirectResponse("/", 303)
        response.delete_cookie(name, httponly=True, samesite="strict", secure=is_secure)
        return response

    def hold(self, opened: Opened) -> AbstractContextManager[None]:
        del opened
        return nullcontext()
