"""The console as an ASGI application: pages, and streams of what changes on them (server-sent events).

Every request has passed guard.py before.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

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


class Console:
    """The pages over one source, for one user."""

    def __init__(self, source: Source, pages: Pages, open_installer: Callable[[], Installer] | None = None) -> None:
        self._source, self._pages = source, pages
        self.token = secrets.token_urlsafe(32)
        self._lists = {origin: Feed(source.watch_list(origin), partial(_pause_list, origin)) for origin in ORIGINS}
        self._runs: dict[RunRef, Feed[RunView]] = {}
        self._notices: dict[RunRef, tuple[float, Notice]] = {}
        self._closing = asyncio.Event()
        self._servers = ServerRoutes(source, pages, self.token, self._stream)
        self._installing = open_installer and InstallRoutes(open_installer, pages.forms, self.token, self._keep_notice)
        self.app = self._make_app()

    def close(self) -> None:
        """End all streams, so that the server can end."""
        self._closing.set()

    def _make_app(self) -> Starlette:
        routes = [
            Route("/", self._show_list),
            Route("/events", self._stream_list),
            Route("/compare", self._compare),
            Route("/compare/events", self._stream_comparison),
            *(self._installing.list_routes() if self._installing else ()),
            *self._servers.list_routes(),
            Route("/runs/local/{release}", self._show_run),
            Route("/runs/local/{release}/events", self._stream_run),
            Route("/runs/cluster/{namespace}/{release}/{chart}", self._show_run),
            Route("/runs/cluster/{namespace}/{release}/{chart}/events", self._stream_run),
            Route("/runs/local/{release}/{verb}", self._act, methods=["POST"]),
            Route("/runs/cluster/{namespace}/{release}/{chart}/{verb}", self._act, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={404: self._not_found, 500: self._failed})

    async def _show_list(self, request: Request) -> Response:
        del request
        views = await asyncio.gather(*(self._read_soon(origin) for origin in ORIGINS))
        return HTMLResponse(
            self._pages.list(dict(zip(ORIGINS, views, strict=True)), self.token, installs=bool(self._installing))
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
        return HTMLResponse(self._pages.run(run, view, self.token, self._find_notice(run)))

    async def _stream_run(self, request: Request) -> Response:
        run = _find_run(request)
        if run is None:
            return Response(status_code=404)
        readings = self._feed(run).listen()

        def make(view: RunView) -> Parts:
            return self._pages.run_parts(run, view, self.token, self._find_notice(run))

        return self._stream(send_changes(readings, make, draw_run))

    async def _act(self, request: Request) -> Response:
        run, verb = _find_run(request), request.path_params["verb"]
        if run is None or verb not in VERBS:
            return HTMLResponse(self._pages.refusal("No such action", "The page of the run shows its actions."), 404)
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
        return HTMLResponse(self._pages.compare(views, f"/compare/events?{request.url.query}", self.token))

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
        # Proxies such as nginx would collect events before they pass them on.
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(keep_alive(events, self._closing), media_type="text/event-stream", headers=headers)

    def _feed(self, run: RunRef) -> Feed[RunView]:
        self._runs = {known: feed for known, feed in self._runs.items() if known == run or not feed.is_idle}
        if run not in self._runs:
            read = self._source.watch_run(run)
            self._runs[run] = Feed(read, partial(_pause_run, run.origin))
        return self._runs[run]

    async def _not_found(self, request: Request, error: Exception) -> Response:
        del request, error
        return HTMLResponse(self._pages.refusal("No such page", "The console has no page at this address."), 404)

    async def _failed(self, request: Request, error: Exception) -> Response:
        del request, error  # the server prints it
        return HTMLResponse(self._pages.refusal("An error in the console", "See the output of the console."), 500)


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
