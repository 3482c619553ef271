"""Reads the model servers that the console shows: from their Deployments, and of one the history that Helm keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from trainchart.actions.promote import read_history
from trainchart.actions.support.cluster_access import Place, open_cluster, read_namespaces
from trainchart.actions.support.model_servers import look_at_server, look_at_servers
from trainchart.console.views import ServerRef, ServersView, ServerView
from trainchart.errors import NotFound, TrainchartError
from trainchart.promotion.history import Entry
from trainchart.promotion.servers import ServerState

_HISTORY_SECONDS = 15.0
"""Between two readings of a history that shows no change: each of Helm's records holds a chart."""


def watch_servers(
    place: Place, in_words: Callable[[TrainchartError], str], *, everywhere: bool, namespaces: tuple[str, ...] = ()
) -> Callable[[], ServersView]:
    """Return what reads the model servers in one request, without Helm's records; of several namespaces in one each."""
    last = ServersView()

    def read() -> ServersView:
        nonlocal last
        try:
            servers, notes = _look(place, namespaces, everywhere=everywhere)
        except TrainchartError as error:
            last = replace(last, error=in_words(error))
        else:
            last = ServersView(tuple(servers), notes, read_at=time.time())
        return last

    return read


def _look(place: Place, namespaces: tuple[str, ...], *, everywhere: bool) -> tuple[list[ServerState], tuple[str, ...]]:
    """Return the servers, and which namespaces may not be read. Raises ClusterError, also where none may."""
    api, own = open_cluster(place)
    if everywhere or not namespaces:
        return look_at_servers(api, "" if everywhere else own), ()
    return read_namespaces(namespaces, lambda each: look_at_servers(api, each))


@dataclass
class ServerWatch:
    """Reads one model server again and again, and its history where it may have changed."""

    place: Place
    server: ServerRef
    in_words: Callable[[TrainchartError], str]
    last: ServerView = field(default_factory=ServerView)
    _entries: tuple[Entry, ...] = ()
    _history_error: str = ""
    _history_at: float = 0.0
    """When the history is read again at the latest; 0: now."""

    def read(self) -> ServerView:
        """Return the server as it is now, or as it was last with the error."""
        try:
            api, namespace = open_cluster(replace(self.place, namespace=self.server.namespace))
            state = look_at_server(api, namespace, self.server.name)
        except NotFound as error:
            self.last = replace(self.last, error=self.in_words(error), is_missing=True)
            return self.last
        except TrainchartError as error:
            self.last = replace(self.last, error=self.in_words(error))
            return self.last
        before = self.last.server
        if before is None or before.record != state.record or before.stable != state.stable:
            self._history_at = 0.0
        if time.monotonic() >= self._history_at:
            self._read_history()
        self.last = ServerView(state, self._entries, self._history_error, read_at=time.time())
        return self.last

    def _read_history(self) -> None:
        try:
            entries, _ = read_history(self.server.name, replace(self.place, namespace=self.server.namespace))
        except TrainchartError as error:
            self._history_error = self.in_words(error)
        else:
            self._entries, self._history_error = tuple(entries), ""
        self._history_at = time.monotonic() + _HISTORY_SECONDS
