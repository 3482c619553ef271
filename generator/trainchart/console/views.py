"""What the console shows about runs, and the Source that it reads them from. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from trainchart.checkpoints.listing import CheckpointList
from trainchart.promotion.history import Entry
from trainchart.promotion.servers import ServerState
from trainchart.reports.curves import Curve
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import CLUSTER, LOCAL, Report

ORIGINS = (LOCAL, CLUSTER)
LINES_SHOWN = 300
_CLUSTER_SECONDS = 2.0
_PODS_PER_SECOND = 100
"""A release with a thousand pods is megabytes to list: it is asked for less often."""


def pause_for(count: int) -> float:
    """Return the seconds between two whole readings of so many releases, or of a release with so many pods."""
    return _CLUSTER_SECONDS + count / _PODS_PER_SECOND


class RunRef(NamedTuple):
    """One run, as the addresses of pages name it."""

    origin: str
    namespace: str
    release: str
    chart: str


def refer_to(report: Report) -> RunRef:
    """Return how to find the run of a report again."""
    if report.origin == LOCAL:
        return RunRef(LOCAL, "", report.key.release, "")
    return RunRef(CLUSTER, *report.key)


@dataclass(frozen=True)
class ListView:
    """The runs of one origin at one moment."""

    reports: tuple[Report, ...] = ()
    notes: tuple[str, ...] = ()
    is_asked: bool = True
    """Whether this console looks there at all."""
    error: str = ""
    """Why it could not be read now; `reports` are then those that were read last."""
    read_at: float = 0.0
    """Unix time at which `reports` were read; 0 for never."""


@dataclass(frozen=True)
class RunView:
    """One run at one moment."""

    report: Report | None = None
    """None where it was never read."""
    why: Report | None = None
    """The same with what `why` looks up beside it."""
    lines: tuple[LogLine, ...] = ()
    notes: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()
    curves_since: float = 0.0
    """Unix time before which no scalar is known; 0 where all are."""
    checkpoints: CheckpointList | None = None
    """None where they are not read: of a release, a pod would be needed."""
    servers: tuple[ServerState, ...] = ()
    """The model servers of a release's namespace, as far as they could be read."""
    error: str = ""
    read_at: float = 0.0
    is_live: bool = False
    """Whether its step is what its leading pod tells, which is soon asked again; the rest is read less often."""
    is_missing: bool = False
    """Whether there is no such run (any more)."""


@dataclass(frozen=True)
class Notice:
    """What came of something that a user did about a run."""

    text: str
    is_bad: bool = False


class ServerRef(NamedTuple):
    """One model server, as the addresses of pages name it."""

    namespace: str
    name: str


@dataclass(frozen=True)
class ServersView:
    """The model servers at one moment."""

    servers: tuple[ServerState, ...] = ()
    notes: tuple[str, ...] = ()
    """Which namespaces may not be read, and why."""
    error: str = ""
    """Why they could not be read now; `servers` are then those that were read last."""
    read_at: float = 0.0


@dataclass(frozen=True)
class ServerView:
    """One model server at one moment."""

    server: ServerState | None = None
    """None where it was never read."""
    entries: tuple[Entry, ...] = ()
    """Its promotions, the newest first."""
    history_error: str = ""
    """Why they are not known."""
    error: str = ""
    read_at: float = 0.0
    is_missing: bool = False


class Source(Protocol):
    """What the console looks at. What it returns is called again and again, from any thread, one call at a time."""

    def watch_list(self, origin: str) -> Callable[[], ListView]:
        """Return what reads the runs of an origin; it never raises for what is wrong with a cluster or a folder."""

    def watch_run(self, run: RunRef) -> Callable[[], RunView]:
        """Return what reads one run; it never raises for what is wrong with a cluster or a folder."""

    def watch_servers(self) -> Callable[[], ServersView]:
        """Return what reads the model servers; it never raises for what is wrong with a cluster."""

    def watch_server(self, server: ServerRef) -> Callable[[], ServerView]:
        """Return what reads one model server and its history; it never raises for what is wrong with a cluster."""

    def act(self, run: RunRef, verb: str) -> Notice:
        """Do what a verb of offers.py says, and return what came of it; refusals are notices, too."""
