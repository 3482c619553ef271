"""What the page of one run shows, as plain data. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainchart.console.list_page import describe_staleness
from trainchart.console.offers import Offer, list_offers, name_run
from trainchart.console.phases import tone_of
from trainchart.console.server_pages import Serving, describe_serving
from trainchart.console.views import RunView
from trainchart.reports.phases import describe_phase, find_phase_start
from trainchart.reports.report import LOCAL, PodReport, Report, RoleReport
from trainchart.reports.run_settings import RoleSettings
from trainchart.reports.text import (
    describe_gpus,
    describe_seconds,
    describe_standing,
    describe_time,
    headline,
)
from trainchart.reports.why import advise, why_lines
from trainchart_runtime.run.state import ENDED_PHASES

_PODS_SHOWN = 200
_METRICS_SHOWN = 12
_NEXT = "What to do next: "


@dataclass(frozen=True)
class PodRow:
    """One pod."""

    label: str
    tone: str
    state: str
    node: str
    restarts: str
    age: str
    gpus: str
    last_end: str


@dataclass(frozen=True)
class Line:
    """One line of the answer of `why`."""

    kind: str
    """title, quote, next, note or plain."""
    text: str


@dataclass(frozen=True)
class LogRow:
    """One line of a log."""

    time: str
    label: str
    text: str
    is_bad: bool


@dataclass(frozen=True)
class RunPage:
    """One run."""

    name: str
    tone: str
    phase: str
    summary: str
    facts: Sequence[tuple[str, str]]
    metrics: Sequence[tuple[str, str]]
    stale: str
    waiting: str
    """What it waits for; empty where it does not."""
    why: Sequence[Line]
    next_step: str
    command: str
    """The arguments with which every command finds the run."""
    offers: Sequence[Offer]
    has_release: bool
    """Whether helm can uninstall it."""
    roles: Sequence[tuple[RoleReport, str]]
    """Each with what its pods ask for."""
    strategy: str
    pods: Sequence[PodRow] | None
    pods_left: int
    has_nodes: bool
    """Whether pods can be on different nodes."""
    has_gpus: bool
    hyperparameters: Sequence[tuple[str, str]]
    values: Sequence[tuple[str, str]]
    origin: Sequence[tuple[str, str]]
    """What it was made of."""
    serving: Serving
    log: Sequence[LogRow]


def describe_run(view: RunView, report: Report, context: str = "") -> RunPage:
    """Return the page of a run that was read; `context` is what the console was given of the kubeconfig's."""
    explained = _renew(view.why, report) if view.why else report
    pods = report.pods
    shown = None if pods is None else [_describe_pod(pod, report.now) for pod in _choose_pods(pods)]
    return RunPage(
        name=report.key.release,
        tone=tone_of(describe_phase(report)),
        phase=describe_phase(report),
        summary=headline(report),
        facts=list(_facts(report)),
        metrics=[(name, f"{value:.6g}") for name, value in list(report.progress.metrics.items())[:_METRICS_SHOWN]],
        stale=describe_staleness(view.error, view.read_at),
        waiting=_find_waiting(report),
        why=list(_explain(explained)),
        next_step=advise(explained),
        command=name_run(report, context),
        offers=list_offers(report, context),
        has_release=report.origin != LOCAL and not view.is_missing,
        roles=[(role, _describe_resources(report.settings.roles.get(role.role))) for role in report.roles],
        strategy=report.settings.strategy,
        pods=shown,
        pods_left=len(pods or ()) - len(shown or ()),
        has_nodes=report.origin != LOCAL,
        has_gpus=any(pod.gpus for pod in pods or ()),
        hyperparameters=_spell_all(report.settings.hyperparameters),
        values=_spell_all(report.settings.values),
        origin=list(_origin(report)),
        serving=describe_serving(view.servers, report, name_run(report, context)),
        log=[_describe_line(line.at, line.label, line.text) for line in view.lines],
    )


def _renew(explained: Report, report: Report) -> Report:
    """Return a report that was explained some seconds ago, with the step that is known now."""
    if explained.attempt != report.attempt or report.progress.at < explained.progress.at:
        return explained
    return replace(explained, now=report.now, progress=report.progress)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    progress = report.progress
    yield "Step", "–" if progress.step is None else f"{progress.step:,}"
    speed = progress.examples_per_second
    yield "Examples/s", "–" if speed is None else f"{speed:,.0f}"
    if report.attempt:
        yield "Attempt", str(report.attempt)
    if find_phase_start(report):
        yield ("Ended" if report.phase in ENDED_PHASES else "In this phase"), _ago(report)
    if report.origin != LOCAL:
        gpus = report.gpus
        held = f" for {describe_seconds(report.now - report.gpus_since)}" if gpus and report.gpus_since else ""
        yield "GPUs held", "?" if gpus is None else f"{describe_gpus(gpus)}{held}" if gpus else "none"
    if progress.at and not report.is_over:
        yield "Last step", f"{describe_seconds(report.now - progress.at)} ago"


def _ago(report: Report) -> str:
    age = describe_seconds(report.now - find_phase_start(report))
    return f"{age} ago" if report.phase in ENDED_PHASES else age


def _find_waiting(report: Report) -> str:
    if report.queue is not None:
        return describe_standing(report.queue)
    if report.problems:
        first = report.problems[0]
        return f"{first.subject}: {first.sentence or first.cause}"
    return ""


def _explain(report: Report) -> Iterator[Line]:
    # The headline is the page's own, and the next step has a place of its own.
    for text in why_lines(report)[2:]:
        if text.startswith(_NEXT):
            continue
        bare = text.strip()
        if bare.startswith("next: "):
            yield Line("next", text)
        elif bare.startswith("| "):
            yield Line("quote", text)
        elif text.startswith("note: "):
            yield Line("note", text)
        elif text and not text.startswith(" "):
            yield Line("title", text)
        else:
            yield Line("plain", text)


def _choose_pods(pods: Sequence[PodReport]) -> Sequence[PodReport]:
    """Return the pods of a large run that matter: the first ones, and those that are not as they should be."""
    if len(pods) <= _PODS_SHOWN:
        return pods
    odd = [pod for pod in pods[2:] if pod.state != "Running" or pod.restarts or pod.program_restarts]
    return [*pods[:2], *odd][:_PODS_SHOWN]


def _describe_pod(pod: PodReport, now: float) -> PodRow:
    inside = f" + {pod.program_restarts}" if pod.program_restarts else ""
    return PodRow(
        label=pod.label,
        tone=tone_of(pod.state),
        state=pod.state,
        node=pod.node or "–",
        restarts=f"{pod.restarts}{inside}",
        age=describe_seconds(now - pod.created),
        gpus=describe_gpus(pod.gpus),
        last_end=pod.last_end,
    )


def _describe_resources(settings: RoleSettings | None) -> str:
    if settings is None:
        return ""
    named = (("cpu", settings.cpu), ("memory", settings.memory))
    return ", ".join([*(f"{value} {name}" for name, value in named if value), *filter(None, [settings.gpus])])


def _spell_all(values: object) -> list[tuple[str, str]]:
    """Return settings by their full key, each value as `--set-json` takes it."""
    return list(_spell("", values)) if isinstance(values, Mapping) else []


def _spell(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from _spell(f"{key}.", value)
        else:
            yield key, "unset" if value is None else json.dumps(value, ensure_ascii=False)


def _origin(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what a run was made of."""
    record = report.record
    code = record.get("code") or {}
    yield "Chart", report.chart or report.key.chart
    if report.origin != LOCAL and report.settings.images:
        yield "Image", ", ".join(report.settings.images)
    if report.run_id:
        yield "Run", report.run_id
    if record.get("command"):
        yield "Command", str(record["command"])
    if isinstance(code, Mapping) and code.get("folder"):
        commit = f", commit {str(code['commit'])[:12]}" if code.get("commit") else ""
        changed = " and changes since" if code.get("isDirty") else ""
        yield "Code", f"{code['folder']}{commit}{changed}"
        if code.get("sha256"):
            yield "Code sha256", str(code["sha256"])[:16]
    if record.get("startedAt"):
        yield "Started", describe_time(float(record["startedAt"]))
    for title, key in (("Python", "python"), ("Host", "host"), ("Chart identity", "chartIdentity")):
        if record.get(key):
            yield title, str(record[key])
    if report.folder:
        yield "Folder", report.folder


_BAD_WORDS = ("Error", "ERROR", "Traceback", "FATAL", "Exception")


def _describe_line(at: str, label: str, text: str) -> LogRow:
    return LogRow(at[11:19], label, text, any(word in text for word in _BAD_WORDS))
