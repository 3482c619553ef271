"""The console as an ASGI application: sign-in, pages, and streams of what changes on them (server-sent events).

Every request passes `_Guard` first: the Host header, the session and, for what changes anything, origin and token.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainchart.console.access import BODY_LIMIT, HEADERS, VALUES_LIMIT, is_same, refuse_host, refuse_origin
from trainchart.console.addresses import address_of, parse_cluster, parse_key, parse_local
from trainchart.console.compare_page import RUNS_COMPARED
from trainchart.console.curves import draw_comparison, draw_run
from trainchart.console.installing import Installer
from trainchart.console.io.feed import Feed, call_in_thread
from trainchart.console.io.installing import InstallRoutes
from trainchart.console.io.servers import ServerRoutes
from trainchart.console.io.streams import keep_alive, make_event, merge, send_changes
from trainchart.console.offers import VERBS
from trainchart.console.pages import Pages, Parts
from trainchart.console.views import ORIGINS, ListView, Notice, RunRef, RunView, Source, pause_for
from trainchart.reports.report import LOCAL

_LOCAL_SECONDS = 0.5
_RUNS_PER_SECOND = 1000
_LIVE_SECONDS = 0.7
_PATIENCE_SECONDS = 0.6
_NOTICE_SECONDS = 60.0
_VALUES = 200
"""Fields of a form with the values of a chart."""
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Console:
    """The pages over one source, for those who know the code."""

    def __init__(
        self,
        source: Source,
        pages: Pages,
        static: Mapping[str, bytes],
        names: tuple[str, ...],
        code: str,
        open_installer: Callable[[], Installer] | None = None,
    ) -> None:
        """`names` are the Host headers that are answered, `code` starts a session."""
        self._source, self._pages, self._static = source, pages, static
        self._names, self._code = names, code
        self._cookie = f"trainchart-{names[0].rpartition(':')[2]}"
        self._session = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self._lists = {origin: Feed(source.watch_list(origin), partial(_pause_list, origin)) for origin in ORIGINS}
        self._runs: dict[RunRef, Feed[RunView]] = {}
        self._notices: dict[RunRef, tuple[float, Notice]] = {}
        self._closing = asyncio.Event()
        self._servers = ServerRoutes(source, pages, self._token, self._stream)
        self._installing = open_installer and InstallRoutes(open_installer, pages.forms, self._token, self._keep_notice)

    def close(self) -> None:
        """End all streams, so that the server can end."""
        self._closing.set()

    def make_app(self) -> ASGIApp:
        """Return the application."""
        routes = [
            Route("/", self._show_list),
            Route("/events", self._stream_list),
            Route("/compare", self._compare),
            Route("/compare/events", self._stream_comparison),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            *(self._installing.list_routes() if self._installing else ()),
            *self._servers.list_routes(),
            Route("/runs/local/{release}", self._show_run),
            Route("/runs/local/{release}/events", self._stream_run),
            Route("/runs/cluster/{namespace}/{release}/{chart}", self._show_run),
            Route("/runs/cluster/{namespace}/{release}/{chart}/events", self._stream_run),
            Route("/runs/local/{release}/{verb}", self._act, methods=["POST"]),
            Route("/runs/cluster/{namespace}/{release}/{chart}/{verb}", self._act, methods=["POST"]),
            Route("/static/{path:path}", self._send_static),
        ]
        return _Guard(Starlette(routes=routes, exception_handlers={404: self._not_found, 500: self._failed}), self)

    async def refuse(self, request: Request) -> Response | None:
        """Return the answer to a request that may not pass; None where it may."""
        if refusal := refuse_host(request.headers.get("host", ""), self._names):
            return HTMLResponse(self._pages.refusal("Wrong address", refusal), 421)
        changes = request.method not in ("GET", "HEAD")
        form = request.scope["form"] = await _read_form(request) if changes else {}
        path = request.url.path
        if path.startswith("/static/") and request.method == "GET":
            return None
        if path == "/sign-in":
            # The code is the proof; the terminal's own page sends it from a file, without an origin.
            return None
        if not is_same(request.cookies.get(self._cookie, ""), self._session):
            return HTMLResponse(self._pages.sign_in(), 401)
        if changes:
            if refusal := refuse_origin(request.headers, self._names):
                return HTMLResponse(self._pages.refusal("Refused", refusal), 403)
            if not is_same(form.get("token", ""), self._token):
                return HTMLResponse(
                    self._pages.refusal("Refused", "This page is of another start: load it again."), 403
                )
        return None

    async def _sign_in(self, request: Request) -> Response:
        if not is_same(request.scope["form"].get("code", "").strip(), self._code):
            return HTMLResponse(self._pages.sign_in("This is not the code that the terminal shows."), 403)
        # No redirect: after a form of a file, which is another site, browsers would follow it without a strict cookie.
        response = HTMLResponse(self._pages.signed_in())
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return response

    async def _sign_out(self, request: Request) -> Response:
        del request
        self._session = secrets.token_urlsafe(32)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return response

    async def _show_list(self, request: Request) -> Response:
        del request
        views = await asyncio.gather(*(self._read_soon(origin) for origin in ORIGINS))
        return HTMLResponse(
            self._pages.list(dict(zip(ORIGINS, views, strict=True)), self._token, installs=bool(self._installing))
        )

    async def _read_soon(self, origin: str) -> ListView:
        """Return the runs of one origin; what takes longer comes with the stream, and holds up no page."""
        try:
            return await asyncio.wait_for(self._lists[origin].read_once(), _PATIENCE_SECONDS)
        except TimeoutError:
            return ListView()

    async def _stream_list(self, request: Request) -> Response:
        del request

        return self._stream(text async for _, text in merge([self._follow(origin) for origin in ORIGINS]))

    async def _follow(self, origin: str) -> AsyncGenerator[str, None]:
        """Yield an event whenever something of one origin has changed."""
        before = None
        async for view in self._lists[origin].listen():
            group = self._pages.list_group(origin, view)
            changed, before = group.changes_since(before), group
            if changed:
                yield make_event("parts", changed)

    async def _show_run(self, request: Request) -> Response:
        run = _find_run(request)
        view = await self._feed(run).read_once() if run else None
        if run is None or view is None or (view.is_missing and view.report is None):
            return HTMLResponse(
                self._pages.refusal("No such run", view.error if view else "No run has this name."), 404
            )
        return HTMLResponse(self._pages.run(run, view, self._token, self._find_notice(run)))

    async def _stream_run(self, request: Request) -> Response:
        run = _find_run(request)
        if run is None:
            return Response(status_code=404)
        readings = self._feed(run).listen()

        def make(view: RunView) -> Parts:
            return self._pages.run_parts(run, view, self._token, self._find_notice(run))

        return self._stream(send_changes(readings, make, draw_run))

    async def _act(self, request: Request) -> Response:
        run, verb = _find_run(request), request.path_params["verb"]
        if run is None or verb not in VERBS:
            return HTMLResponse(self._pages.refusal("No such action", "Go back to the run."), 404)
        notice = await call_in_thread(partial(self._source.act, run, verb))
        self._keep_notice(run, notice)
        return RedirectResponse(address_of(run), 303)

    def _keep_notice(self, run: RunRef, notice: Notice) -> None:
        self._notices[run] = (time.monotonic(), notice)

    def _find_notice(self, run: RunRef) -> Notice | None:
        """Return what came of the last action about a run, as long as it is news."""
        at, notice = self._notices.get(run, (-math.inf, None))
        return notice if time.monotonic() - at < _NOTICE_SECONDS else None

    async def _compare(self, request: Request) -> Response:
        runs = _find_runs(request)
        if not 2 <= len(runs) <= RUNS_COMPARED:
            refusal = f"Choose 2 to {RUNS_COMPARED} different runs on the page of all runs."
            return HTMLResponse(self._pages.refusal("Nothing to compare", refusal), 400)
        views = await asyncio.gather(*(feed.read_once() for feed in map(self._feed, runs)))
        missing = [f"{run.release}: {view.error}" for run, view in zip(runs, views, strict=True) if not view.report]
        if missing:
            return HTMLResponse(self._pages.refusal("No such run", "; ".join(missing)), 404)
        return HTMLResponse(self._pages.compare(views, f"/compare/events?{request.url.query}", self._token))

    async def _stream_comparison(self, request: Request) -> Response:
        runs = _find_runs(request)
        if not 2 <= len(runs) <= RUNS_COMPARED:
            return Response(status_code=404)
        return self._stream(send_changes(self._collect(runs), self._pages.compare_parts, draw_comparison))

    async def _collect(self, runs: Sequence[RunRef]) -> AsyncGenerator[Sequence[RunView], None]:
        """Yield the newest view of every run, whenever one of them is read and all have been."""
        views: dict[int, RunView] = {}
        async for number, view in merge([self._feed(run).listen() for run in runs]):
            views[number] = view
            if len(views) == len(runs) and all(each.report for each in views.values()):
                yield [views[each] for each in range(len(runs))]

    def _stream(self, events: AsyncIterator[str]) -> Response:
        return StreamingResponse(keep_alive(events, self._closing), media_type="text/event-stream")

    def _feed(self, run: RunRef) -> Feed[RunView]:
        self._runs = {known: feed for known, feed in self._runs.items() if known == run or not feed.is_idle}
        if run not in self._runs:
            read = self._source.watch_run(run)
            self._runs[run] = Feed(read, partial(_pause_run, run.origin))
        return self._runs[run]

    async def _send_static(self, request: Request) -> Response:
        path = request.path_params["path"]
        kind = _TYPES.get(path.rpartition(".")[2])
        if path not in self._static or kind is None:
            return Response(status_code=404)
        return Response(self._static[path], media_type=kind)

    async def _not_found(self, request: Request, error: Exception) -> Response:
        del request, error
        return HTMLResponse(self._pages.refusal("No such page", "The console has no page with this address."), 404)

    async def _failed(self, request: Request, error: Exception) -> Response:
        del request, error  # the server prints it
        return HTMLResponse(self._pages.refusal("An error in the console", "The terminal shows what happened."), 500)


class _Guard:
    """Refuses what may not pass, and adds the headers of access.py to every answer."""

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app, self._console = app, console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        request = Request(scope, receive)
        try:
            refusal = await self._console.refuse(request)
        except (_TooLarge, ClientDisconnect):
            refusal = Response(status_code=413)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await refusal(scope, receive, send_with_headers)


class _TooLarge(Exception):
    pass


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, which is small and has each once. Raises _TooLarge."""
    size, count = (VALUES_LIMIT, _VALUES) if request.url.path.startswith("/new/") else (BODY_LIMIT, 20)
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


def _find_run(request: Request) -> RunRef | None:
    parts = request.path_params
    if "namespace" in parts:
        return parse_cluster(parts["namespace"], parts["release"], parts["chart"])
    return parse_local(parts["release"])


def _find_runs(request: Request) -> list[RunRef]:
    """Return the runs that a query names, each once."""
    return list(dict.fromkeys(filter(None, map(parse_key, request.query_params.getlist("run")))))


def _pause_list(origin: str, view: ListView) -> float:
    return _pause(origin, len(view.reports))


def _pause_run(origin: str, view: RunView) -> float:
    return _LIVE_SECONDS if view.is_live else _pause(origin, len(view.report.pods or ()) if view.report else 0)


def _pause(origin: str, count: int) -> float:
    """Return the seconds between two readings of so many runs or pods."""
    if origin == LOCAL:
        return _LOCAL_SECONDS + min(1.0, count / _RUNS_PER_SECOND)
    return pause_for(count)
