"""What the page of all runs shows, as plain data. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainchart.console.addresses import address_of, key_of
from trainchart.console.phases import tone_of
from trainchart.console.views import ListView, refer_to
from trainchart.reports.list_table import ListRow, describe_row, sort_key
from trainchart.reports.phases import describe_phase
from trainchart.reports.report import LOCAL, Report
from trainchart.reports.text import describe_time
from trainchart_runtime.run.state import ENDED_PHASES

_TITLES = {LOCAL: "On this machine", "cluster": "On the cluster"}


@dataclass(frozen=True)
class Row:
    """One run."""

    id: str
    """Of its element: the same as long as the run is there."""
    address: str
    key: str
    """By which it is chosen for a comparison."""
    tone: str
    cells: ListRow
    step: str
    """With thousands set apart."""
    is_running: bool
    speed: str


@dataclass(frozen=True)
class Group:
    """The runs of one origin."""

    origin: str
    title: str
    rows: Sequence[Row]
    counts: Sequence[tuple[str, int]]
    """Phase, and how many runs are in it."""
    has_gpus: bool
    notes: Sequence[str]
    stale: str
    """What to say where the rows are old, or could not be read."""
    is_asked: bool
    is_pending: bool
    """Whether the first reading is not done yet."""


def describe_group(origin: str, view: ListView) -> Group:
    """Return the runs of one origin: those that hold GPUs and those that go on first."""
    reports = sorted(view.reports, key=_order)
    return Group(
        origin=origin,
        title=_TITLES[origin],
        rows=[_describe(report) for report in reports],
        counts=Counter(describe_phase(report) for report in reports).most_common(),
        has_gpus=any(report.gpus or report.gpus is None for report in reports),
        notes=[" ".join(text.split()) for text in view.notes],
        stale=describe_staleness(view.error, view.read_at),
        is_asked=view.is_asked,
        is_pending=not view.read_at and not view.error,
    )


def describe_staleness(error: str, read_at: float) -> str:
    """Return what to say about something that cannot be read now; empty where it can."""
    if not error:
        return ""
    known = f"The page shows the state as of {describe_time(read_at)}." if read_at else "Nothing is known yet."
    return f"{error}. {known}"


def find_holdings(reports: Iterable[Report]) -> str:
    """Return how many accelerators all these runs hold; empty for none."""
    total: Counter[str] = Counter()
    for report in reports:
        total.update(report.gpus or {})
    return ", ".join(f"{number} {resource}" for resource, number in sorted(total.items()) if number)


def _order(report: Report) -> tuple[object, ...]:
    held = sum((report.gpus or {}).values())
    if report.origin == LOCAL:
        # Names of local runs are numbered by the tool: the newest is what a user looks for.
        started = report.record.get("startedAt")
        newest = -float(started) if isinstance(started, (int, float)) else 0.0
        return (report.phase in ENDED_PHASES, newest, sort_key(report))
    return (-held, report.phase in ENDED_PHASES, sort_key(report))


def _describe(report: Report) -> Row:
    progress, run = report.progress, refer_to(report)
    is_running = not report.is_over
    return Row(
        id="row" + address_of(run).replace("/", ":"),
        address=address_of(run),
        key=key_of(run),
        tone=tone_of(describe_phase(report)),
        cells=describe_row(report),
        step="–" if progress.step is None else f"{progress.step:,}",
        is_running=is_running,
        speed=f"{progress.examples_per_second:,.0f}"
        if is_running and progress.examples_per_second is not None
        else "–",
    )
