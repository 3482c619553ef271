"""Answers what is asked about model servers: their list, one of them with its history, and what changes there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from trainchart.console.addresses import parse_server
from trainchart.console.io.feed import Feed
from trainchart.console.io.streams import send_changes
from trainchart.console.pages import Pages
from trainchart.console.views import ServerRef, ServersView, ServerView, Source, pause_for

Streamer = Callable[[AsyncIterator[str]], Response]
"""Makes the answer of events."""


class ServerRoutes:
    """Answers what is asked below /servers; the servers are read only while someone looks at them."""

    def __init__(self, source: Source, pages: Pages, token: str, stream: Streamer) -> None:
        """`stream` makes the answer of events."""
        self._source, self._pages, self._token, self._stream = source, pages, token, stream
        self._list: Feed[ServersView] = Feed(source.watch_servers(), lambda view: pause_for(len(view.servers)))
        self._feeds: dict[ServerRef, Feed[ServerView]] = {}

    def list_routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/servers", self._show_list),
            Route("/servers/events", self._stream_list),
            Route("/servers/{namespace}/{name}", self._show),
            Route("/servers/{namespace}/{name}/events", self._stream_one),
        ]

    async def _show_list(self, request: Request) -> Response:
        del request
        return HTMLResponse(self._pages.servers.list(await self._list.read_once(), self._token))

    async def _stream_list(self, request: Request) -> Response:
        del request
        return self._stream(send_changes(self._list.listen(), self._pages.servers.list_parts, lambda _: None))

    async def _show(self, request: Request) -> Response:
        server = _find(request)
        view = await self._feed(server).read_once() if server else None
        if server is None or view is None or view.server is None:
            message = view.error if view else "No model server has this name."
            return HTMLResponse(self._pages.refusal("No such model server", message), 404)
        return HTMLResponse(self._pages.servers.one(server, view, self._token))

    async def _stream_one(self, request: Request) -> Response:
        server = _find(request)
        if server is None:
            return Response(status_code=404)
        readings = (view async for view in self._feed(server).listen() if view.server is not None)
        return self._stream(send_changes(readings, self._pages.servers.parts, lambda _: None))

    def _feed(self, server: ServerRef) -> Feed[ServerView]:
        self._feeds = {known: feed for known, feed in self._feeds.items() if known == server or not feed.is_idle}
        if server not in self._feeds:
            self._feeds[server] = Feed(self._source.watch_server(server), lambda _: pause_for(0))
        return self._feeds[server]


def _find(request: Request) -> ServerRef | None:
    return parse_server(request.path_params["namespace"], request.path_params["name"])
