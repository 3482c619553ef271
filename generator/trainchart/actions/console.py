"""The use case `trainchart console`: pages show what the actions of list, status, why, logs and checkpoints return."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol

from trainchart import __version__
from trainchart.actions.checkpoints import open_checkpoints
from trainchart.actions.console_servers import ServerWatch, watch_servers
from trainchart.actions.list import list_cluster, list_local
from trainchart.actions.logs import read_logs
from trainchart.actions.status import explain_run, open_run
from trainchart.actions.support.checkpoint_release import HelperOptions
from trainchart.actions.support.cluster_access import Place, open_cluster, read_namespaces
from trainchart.actions.support.live_progress import LiveProgress
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.actions.support.model_servers import look_at_servers
from trainchart.actions.support.run_lookup import RunAddress
from trainchart.checkpoints.listing import CheckpointList
from trainchart.console.access import is_loopback
from trainchart.console.installing import Installer
from trainchart.console.pages import Pages
from trainchart.console.views import (
    LINES_SHOWN,
    ListView,
    Notice,
    RunRef,
    RunView,
    ServerRef,
    ServersView,
    ServerView,
    pause_for,
    refer_to,
)
from trainchart.errors import NotFound, ToolError, TrainchartError, UsageError
from trainchart.local.io import run_report
from trainchart.local.io.curve_file import read_points
from trainchart.local.io.release_folder import holds_run
from trainchart.promotion.servers import ServerState
from trainchart.reports.curves import POINTS_KEPT, Point, make_curves, make_point, thin
from trainchart.reports.log_line import LogLine, cut_line
from trainchart.reports.report import LOCAL, Report
from trainchart.resources import read_console_files

_WHY_SECONDS = 10.0
"""Between two answers of `why` about the same state of a release: it reads far more than `status`."""
_CHECKPOINT_SECONDS = 5.0
_SERVERS_SECONDS = 5.0
_REST = 5
"""Times as long as it took, long logs are left unread."""
_LAST = "leading task"
_RECORD_LATE_SECONDS = 45.0
"""So long after a step that the leading pod has told, the record may know an older one."""


_GONE_SECONDS = 3600.0
"""So long after a release was last read, its scalars are forgotten: it was uninstalled, and no user looks at it."""


@dataclass
class _Seen:
    """What was seen of a release."""

    points: list[Point] = field(default_factory=list)
    told_at: float = -math.inf
    """When its leading pod told a step the last time."""
    read_at: float = 0.0


@dataclass(frozen=True)
class Scope:
    """What a console looks at."""

    place: Place
    runs_folder: Path
    everywhere: bool = False
    namespaces: tuple[str, ...] = ()
    """Those whose releases are listed, where there are several."""
    looks_locally: bool = True
    looks_at_cluster: bool = True


class RunSource:
    """Reads what the console shows; keeps the scalars of releases that it has seen, since their record has the last."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._seen: dict[RunRef, _Seen] = {}

    def watch_list(self, origin: str) -> Callable[[], ListView]:
        return self._watch_local() if origin == LOCAL else self._watch_cluster()

    def watch_run(self, run: RunRef) -> Callable[[], RunView]:
        return _RunWatch(self._scope, run, self._keep_points).read

    def watch_servers(self) -> Callable[[], ServersView]:
        scope = self._scope
        return watch_servers(scope.place, _in_words, everywhere=scope.everywhere, namespaces=scope.namespaces)

    def watch_server(self, server: ServerRef) -> Callable[[], ServerView]:
        return ServerWatch(self._scope.place, server, _in_words).read

    def act(self, run: RunRef, verb: str) -> Notice:
        # With it come the models of charts, which nothing else of the console needs.
        from trainchart.actions.control import Controlled, control_run
        from trainchart.cluster.control import Verb

        def describe(controlled: Controlled) -> str:
            sets = ", ".join(f"{name}={value}" for name, value in controlled.change.sets.items())
            unchanged = "" if controlled.is_changed else "; nothing was changed"
            kept = f"; kept changes made outside the chart: {', '.join(controlled.kept)}" if controlled.kept else ""
            note = f"; note: {controlled.note}" if controlled.note else ""
            return f"{f'set {sets}' if sets else controlled.change.done}{unchanged}{kept}{note}"

        try:
            find_run(self._scope, run)
            return Notice(f"{run.release}: {describe(control_run(address_of(self._scope, run), Verb(verb)))}")
        except TrainchartError as error:
            problems = "".join(f"; {problem.message}" for problem in error.problems)
            return Notice(f"{verb} was refused: {_in_words(error)}{problems}", is_bad=True)

    def _watch_local(self) -> Callable[[], ListView]:
        known: dict[Path, tuple[object, Report]] = {}

        def read_folder(folder: Path) -> Report:
            """Return the report of a run; of one that is over, its files are read once."""
            stamp = run_report.stamp_record(folder)
            if folder in known and known[folder][0] == stamp:
                return replace(known[folder][1], now=time.time())
            report = run_report.read_report(folder)
            if report.is_over:
                known[folder] = (stamp, report)
            return report

        def read() -> ListView:
            if not self._scope.looks_locally:
                return ListView(is_asked=False)
            notes: list[str] = []
            reports = list_local(self._scope.runs_folder, notes.append, read_folder)
            return ListView(tuple(reports), tuple(notes), read_at=time.time())

        return read

    def _watch_cluster(self) -> Callable[[], ListView]:
        last = ListView(is_asked=self._scope.looks_at_cluster)

        def read() -> ListView:
            nonlocal last
            if not last.is_asked:
                return last
            try:
                reports, notes = self._list_cluster()
            except TrainchartError as error:
                last = replace(last, error=_in_words(error))
            else:
                last = ListView(tuple(reports), notes, read_at=time.time())
                for report in reports:
                    self._keep_points(report)
                self._forget_gone()
            return last

        return read

    def _list_cluster(self) -> tuple[list[Report], tuple[str, ...]]:
        """Return the releases, and which namespaces may not be read. Raises ClusterError, also where none may."""
        scope = self._scope
        if scope.everywhere or not scope.namespaces:
            return list_cluster(scope.place, everywhere=scope.everywhere), ()
        return read_namespaces(
            scope.namespaces, lambda each: list_cluster(replace(scope.place, namespace=each), everywhere=False)
        )

    def _keep_points(self, report: Report, *, is_live: bool = False) -> list[Point]:
        """Return the points of a release that were seen so far, with that of this report."""
        run, progress, now = refer_to(report), report.progress, time.monotonic()
        seen = self._seen.setdefault(run, _Seen())
        seen.read_at, points = now, seen.points
        if is_live:
            seen.told_at = now
        elif now < seen.told_at + _RECORD_LATE_SECONDS and not report.is_over:
            return points
        point = make_point(points, _LAST, progress.at, progress.step, progress.metrics, progress.examples_per_second)
        if point is not None:
            points = [*points, point]
            seen.points = thin(points) if len(points) >= 2 * POINTS_KEPT else points
        return points

    def _forget_gone(self) -> None:
        oldest = time.monotonic() - _GONE_SECONDS
        # Several threads read; those that come meanwhile are not old.
        for run, seen in list(self._seen.items()):
            if seen.read_at < oldest:
                self._seen.pop(run, None)


class KeepPoints(Protocol):
    """Keeps the scalars of a report, and returns all of its run."""

    def __call__(self, report: Report, *, is_live: bool = False) -> list[Point]: ...


@dataclass
class _RunWatch:
    """Reads one run again and again, and what takes longer less often."""

    scope: Scope
    run: RunRef
    keep_points: KeepPoints
    last: RunView = field(default_factory=RunView)
    _look: Callable[[], Report] | None = None
    _explained: tuple[object, float] = (None, 0.0)
    _checkpoints_at: float = 0.0
    _servers_at: float = 0.0
    """When the model servers of the namespace may be read again."""
    _lines_at: float = 0.0
    """When logs may be read again."""
    _log_notes: tuple[str, ...] = ()
    _whole_at: float = 0.0
    """When more than the step is read again."""
    _recorded: Report | None = None
    """The last report without what the leading pod has told since."""

    def __post_init__(self) -> None:
        self._live = LiveProgress(replace(self.scope.place, namespace=self.run.namespace))

    def read(self) -> RunView:
        try:
            if self.last.is_live and self._recorded is not None and time.monotonic() < self._whole_at:
                self.last = self._read_step(self.last, replace(self._recorded, now=time.time()))
            else:
                self.last = self._read()
        except NotFound as error:
            self._look = None
            self.last = replace(self.last, error=_in_words(error), is_live=False, is_missing=True)
        except TrainchartError as error:
            self._look = None  # credentials may have changed meanwhile
            self.last = replace(self.last, error=_in_words(error), is_live=False)
        return self.last

    @property
    def _address(self) -> RunAddress:
        return address_of(self.scope, self.run)

    def _read(self) -> RunView:
        find_run(self.scope, self.run)
        self._look = self._look or open_run(self._address)
        report = self._look()
        lines, notes = self._read_lines()
        view = RunView(
            report=report,
            why=self._explain(report),
            lines=lines,
            notes=notes,
            checkpoints=self._list_checkpoints(report),
            servers=self._look_at_servers(report),
            read_at=time.time(),
        )
        if report.origin == LOCAL:
            points = read_points(self.scope.runs_folder / self.run.release)
            return replace(view, curves=make_curves(points, points[0].task if points else ""))
        self._whole_at, self._recorded = time.monotonic() + pause_for(len(report.pods or ())), report
        return self._read_step(view, report)

    def _read_step(self, view: RunView, recorded: Report) -> RunView:
        """Return a view of a release with what its leading pod tells now."""
        report = self._live.renew(recorded)
        points = self.keep_points(report, is_live=report is not recorded)
        refusal = f"note: steps are those of the record, up to 30 seconds late: {self._live.refusal}"
        return replace(
            view,
            report=report,
            is_live=self._live.is_live,
            notes=(*self._log_notes, refusal) if self._live.refusal else self._log_notes,
            curves=make_curves(points, points[0].task if points else ""),
            curves_since=points[0].at if points else 0.0,
        )

    def _explain(self, report: Report) -> Report:
        if report.origin == LOCAL:
            return report
        state = (report.phase, report.attempt, report.progress.step, report.problems, report.incidents, report.outcome)
        known, at = self._explained
        if self.last.why is None or known != state or time.monotonic() - at > _WHY_SECONDS:
            self._explained = (state, time.monotonic())
            with suppress(TrainchartError):
                return explain_run(self._address)
            return report
        return self.last.why

    def _look_at_servers(self, report: Report) -> tuple[ServerState, ...]:
        if report.origin == LOCAL or time.monotonic() < self._servers_at:
            return self.last.servers
        self._servers_at = time.monotonic() + _SERVERS_SECONDS
        with suppress(TrainchartError):
            api, namespace = open_cluster(self._address.place)
            return tuple(look_at_servers(api, namespace))
        return self.last.servers

    def _read_lines(self) -> tuple[tuple[LogLine, ...], tuple[str, ...]]:
        begin = time.monotonic()
        if begin < self._lines_at:
            return self.last.lines, self._log_notes
        notes: list[str] = []
        lines: tuple[LogLine, ...] = ()
        try:
            found = read_logs(self._address, LogsFilter(tail=LINES_SHOWN, is_brief=True), notes.append)
            lines = tuple(replace(line, text=cut_line(line.text)) for line in found)
        except TrainchartError as error:
            notes.append(_in_words(error))
        now = time.monotonic()
        self._lines_at = now + _REST * (now - begin)
        self._log_notes = tuple(notes)
        return lines, self._log_notes

    def _list_checkpoints(self, report: Report) -> CheckpointList | None:
        if report.origin != LOCAL:
            return None
        if time.monotonic() - self._checkpoints_at < _CHECKPOINT_SECONDS:
            return self.last.checkpoints
        self._checkpoints_at = time.monotonic()
        with suppress(TrainchartError):
            return open_checkpoints(self._address, HelperOptions(), lambda _: None).read_list()
        return None


def address_of(scope: Scope, run: RunRef) -> RunAddress:
    """Return the run as the actions of commands are given it."""
    if run.origin == LOCAL:
        return RunAddress(run.release, Place(), scope.runs_folder)
    place = replace(scope.place, namespace=run.namespace)
    return RunAddress(f"{run.release}/{run.chart}", place, scope.runs_folder)


def find_run(scope: Scope, run: RunRef) -> None:
    """Raise NotFound for a local run that is not there or not shown: a name alone could also mean a release."""
    if run.origin == LOCAL and not (scope.looks_locally and holds_run(scope.runs_folder / run.release)):
        raise NotFound(f"there is no local run {run.release!r} in {scope.runs_folder}")


def _in_words(error: TrainchartError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def open_console(scope: Scope, host: str, port: int, *, opens_browser: bool, tell: Callable[[str], None]) -> None:
    """Serve the console until the user ends it; `tell` gets its address and code.

    Raises:
        UsageError: other machines could reach `host`.
        ToolError: the extra `console` is not installed, or nothing can listen there.
    """
    if not is_loopback(host):
        raise UsageError(
            f"--host: {host!r} is not a loopback address, such as 127.0.0.1 or ::1",
            hint="from another machine: ssh -L 8080:127.0.0.1:8080 THIS-MACHINE, with --port 8080 here",
        )
    require_server()
    from trainchart.console.io.app import Console
    from trainchart.console.io.serve import serve_console

    pages = read_pages(scope.place.context)

    @cache
    def open_installer() -> Installer:
        # With it come repositories, archives and the models of charts, which looking at runs does not need.
        from trainchart.actions.install import ReleaseInstaller

        return ReleaseInstaller(scope.place)

    console = Console(RunSource(scope), pages, open_installer if scope.looks_at_cluster else None)
    serve_console(console, pages, read_console_files("static"), host, port, opens_browser=opens_browser, tell=tell)


def require_server() -> None:
    """Raise ToolError where the extra `console` is not installed."""
    try:
        import_module("trainchart.console.io.serve")
    except ModuleNotFoundError as error:
        raise ToolError(
            f"the console needs {error.name}, which is not installed", hint="pip install 'trainchart[console]'"
        ) from error


def read_pages(context: str = "", *, takes_tokens: bool = False) -> Pages:
    """Return what makes the pages."""
    templates = {name: content.decode() for name, content in read_console_files("templates").items()}
    return Pages(templates, __version__, context, takes_tokens=takes_tokens)
