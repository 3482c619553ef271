"""The pages of model servers, and which of them serve a run: what they show, and their HTML by templates. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainchart.console.addresses import address_of, address_of_server, parse_cluster
from trainchart.console.list_page import describe_staleness
from trainchart.console.phases import BAD, GOOD, QUIET, tone_of
from trainchart.console.views import ServerRef, ServersView, ServerView
from trainchart.promotion import history
from trainchart.promotion.history import Entry, describe_metrics, describe_origin
from trainchart.promotion.record import Source
from trainchart.promotion.servers import ServerState, Track, list_servers_of
from trainchart.reports.report import LOCAL, Report
from trainchart_runtime.run.state import ENDED_PHASES, SUCCEEDED

SERVER_PARTS = ("server-head", "server-history", "server-commands")
_SERVERS_OFFERED = 8
_CHART_NAME = re.compile(r"([a-z0-9][a-z0-9.-]{0,62}?)-[0-9]+\.[0-9]+\.[0-9]+.*")
_TONES = {history.SERVING: GOOD, history.FAILED: BAD, history.ROLLED_BACK: BAD}
_NOT_PROMOTED = "not promoted"
_LATER = "It can be promoted once it has succeeded."


@dataclass(frozen=True)
class ServerRow:
    """One model server."""

    namespace: str
    name: str
    address: str
    tone: str
    phase: str
    pods: str
    model: str
    version: str
    origin: str
    """The release and step that its model is from."""
    origin_address: str
    """Of the page of that run; empty where no page can be named."""
    run: str
    since: str
    by: str
    canary: str
    """Empty for none."""
    note: str = ""


@dataclass(frozen=True)
class EntryRow:
    """One promotion."""

    revision: int
    at: str
    version: int
    origin: str
    address: str
    run: str
    by: str
    gates: Sequence[str]
    metrics: str
    state: str
    tone: str
    why: str


@dataclass(frozen=True)
class Serving:
    """Which servers serve a run, and how others would."""

    is_shown: bool
    rows: Sequence[ServerRow] = ()
    commands: Sequence[str] = ()
    note: str = ""
    others: int = 0
    """Servers beyond those that commands are shown for."""


class Renderer(Protocol):
    """What makes HTML of a template."""

    def render(self, name: str, **values: Any) -> str:
        """Return the page."""


class ServerPages:
    """Makes the pages."""

    def __init__(self, renderer: Renderer, context: str) -> None:
        self._render, self._context = renderer.render, context

    def list(self, view: ServersView, token: str) -> str:
        """Return the page of all model servers."""
        return self._render("servers.html", parts=self.list_parts(view), token=token)

    def list_parts(self, view: ServersView) -> dict[str, str]:
        """Return what changes on the page of all model servers."""
        rows, stale = list(map(describe_server, view.servers)), describe_staleness(view.error, view.read_at)
        return {"servers": self._render("servers_table.html", rows=rows, stale=stale, notes=view.notes)}

    def one(self, server: ServerRef, view: ServerView, token: str) -> str:
        """Return the page of one model server."""
        address = address_of_server(server)
        return self._render("server.html", server=server, parts=self.parts(view), address=address, token=token)

    def parts(self, view: ServerView) -> dict[str, str]:
        """Return what changes on the page of one model server that was read."""
        assert view.server is not None, "who shows a server has read it"
        values = {
            "row": describe_server(view.server),
            "view": view,
            "stale": describe_staleness(view.error, view.read_at),
            "takeback": view.server.record.takeback,
            "content": view.server.stable.content,
            "entries": [_describe_entry(each, view.server.namespace) for each in view.entries],
            "commands": list(list_commands(view.server, self._context)),
        }
        return {name: self._render(f"{name.replace('-', '_')}.html", **values) for name in SERVER_PARTS}


def describe_server(server: ServerState, note: str = "") -> ServerRow:
    """Return what lists show of a model server."""
    promotion, (since, by) = server.record.promotion, server.since
    return ServerRow(
        namespace=server.namespace,
        name=server.name,
        address=address_of_server(ServerRef(server.namespace, server.name)),
        tone=tone_of(server.stable.phase),
        phase=server.stable.phase,
        pods=_count(server.stable),
        model=server.model or "?",
        version=server.stable.version or "?",
        origin=describe_origin(promotion.source) if promotion else _NOT_PROMOTED,
        origin_address=_find_address(promotion.source, server.namespace) if promotion else "",
        run=promotion.source.run if promotion else "",
        since=since,
        by=by,
        canary=_describe_canary(server),
        note=note,
    )


def describe_serving(servers: Sequence[ServerState], report: Report, command: str) -> Serving:
    """Return which servers serve exports of a release; `command` is how commands name it."""
    if not servers or report.origin == LOCAL:
        return Serving(is_shown=False)
    rows, own = [], set()
    for each in list_servers_of(servers, report.key.namespace, report.key.release):
        promotion = each.record.promotion
        run = promotion.source.run if promotion else ""
        is_other = bool(run and report.run_id and run != report.run_id)
        if not is_other:
            own.add(each.name)
        rows.append(describe_server(each, f"of another run of the release, {run}" if is_other else ""))
    others = [each for each in servers if each.name not in own]
    has_failed = report.phase in ENDED_PHASES and report.phase != SUCCEEDED
    offered = [] if has_failed else others[:_SERVERS_OFFERED]
    return Serving(
        is_shown=bool(rows or offered),
        rows=rows,
        commands=[f"trainchart promote {command} --to {shlex.quote(each.name)}" for each in offered],
        note=_LATER if offered and report.phase != SUCCEEDED else "",
        others=0 if has_failed else len(others) - len(offered),
    )


def list_commands(server: ServerState, context: str) -> Iterator[tuple[str, str]]:
    """Yield what can be done about a server, each with its command."""
    place = f"--to {shlex.quote(server.name)} -n {shlex.quote(server.namespace)}"
    place += f" --context {shlex.quote(context)}" if context else ""
    yield "Serve the export of a release", f"trainchart promote RELEASE {place}"
    yield "Roll back to the model that was served before", f"trainchart promote {place} --rollback"
    yield "Show the history in a terminal", f"trainchart promote {place} --history"


def _describe_entry(entry: Entry, namespace: str) -> EntryRow:
    promotion = entry.promotion
    return EntryRow(
        revision=entry.revision,
        at=promotion.at,
        version=promotion.model.version,
        origin=describe_origin(promotion.source),
        address=_find_address(promotion.source, namespace),
        run=promotion.source.run,
        by=promotion.by,
        gates=promotion.gates,
        metrics=describe_metrics(promotion.source),
        state=entry.state,
        tone=_TONES.get(entry.state, QUIET),
        why=entry.why,
    )


def _describe_canary(server: ServerState) -> str:
    if server.canary is None:
        return ""
    share = f"{server.weight} %: " if server.weight else ""
    return f"{share}version {server.canary.version or '?'}, {_count(server.canary)} pods"


def _find_address(source: Source, namespace: str) -> str:
    """Return the page of the run that a model is from, as far as a record names it: its chart is NAME-VERSION there."""
    chart = _CHART_NAME.fullmatch(source.chart)
    run = parse_cluster(namespace, source.release, chart[1]) if chart else None
    return address_of(run) if run else ""


def _count(track: Track) -> str:
    return f"{track.ready}/{track.wanted}"
