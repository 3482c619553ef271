"""Puts reports into words for people: the page of `status`, times, durations and tables. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from trainchart.reports.hints import choose_problem_hint, fill_in, find_notes, leave_notes
from trainchart.reports.phases import describe_phase, describe_restart, find_phase_start
from trainchart.reports.report import (
    FROM_PODS,
    LOCAL,
    PodReport,
    QueueStanding,
    Report,
    ReportedProblem,
)
from trainchart.reports.run_settings import describe_hyperparameters
from trainchart.reports.widths import measure
from trainchart_runtime.log_text import clean
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import ENDED_PHASES, KILLED, SETBACKS_KEPT

_PODS_SHOWN = 30
"""Of a release with a thousand workers, those that run as they should are only counted."""
_NAMES_SHOWN = 4
_CHANGES_SHOWN = 8
_SETBACKS_SHOWN = 3
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def describe_seconds(seconds: float) -> str:
    """Return a duration in its two largest units, such as "3 h 12 min"."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in _UNITS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {unit}")
        if parts and (len(parts) == 2 or unit == "min"):
            break
    return " ".join(parts[:2]) or "0 s"


def describe_bytes(size: float) -> str:
    """Return a size as people read it, such as "1.2 GiB"."""
    for unit in _BYTE_UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_BYTE_UNITS[-1]}"


def describe_time(at: float) -> str:
    """Return a moment in UTC; a question mark where it is not known or makes no sense."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC" if at > 0 else "?"
    except (OverflowError, OSError, ValueError):
        return "?"


def clean_lines(lines: Iterable[str]) -> list[str]:
    """Return lines that a terminal can show as they are."""
    return [clean(line) for line in lines]


def make_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with the columns below each other."""
    widths = [max(measure(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    lines = (
        "  ".join(f"{cell}{' ' * (width - measure(cell))}" for cell, width in zip(row, widths, strict=True))
        for row in (headings, *rows)
    )
    return [line.rstrip() for line in lines]


def describe_pace(seconds: float) -> str:
    """Return how long a step takes."""
    return f"{seconds:.2g} s" if seconds < 10 else describe_seconds(seconds)


def describe_slowdown(report: Report) -> str:
    """Return since when steps take far longer than before; nothing where they do not."""
    if report.slowdown is None:
        return ""
    before, since = describe_pace(report.slowdown.usual), describe_time(report.slowdown.since)
    return f"steps have taken about {describe_pace(report.seconds_per_step)} each since {since}, up from {before}"


def describe_silence(report: Report) -> str:
    """Return for how long there has been no new step."""
    since = f", since {list_names(report.early_finishers)} finished" if report.early_finishers else ""
    return f"no new step for {describe_seconds(report.now - report.progress.at)}{since}"


def status_lines(report: Report) -> list[str]:
    """Return the page of one training: what it does, its roles and pods, and what is wrong."""
    lines = [*_summary(report), ""]
    if report.roles:
        rows = [
            (each.role, _known(each.running), str(each.finished), str(each.wanted), str(each.failures))
            for each in report.roles
        ]
        lines += [*make_table(("ROLE", "RUNNING", "FINISHED", "WANTED", "FAILURES"), rows), ""]
    if report.pods:
        lines += [*_pod_lines(report.pods, report.now), ""]
    lines += setback_lines(report)
    lines += problem_lines(report.problems, report.address, report.remarks)
    notes = leave_notes(report.problems, report.remarks)
    changes = (
        f"changed outside Helm: {each.subject}, by {each.by} at {describe_time(each.at)}"
        for each in report.outside_changes[-_CHANGES_SHOWN:]
    )
    lines += [f"note: {remark}" for remark in (*notes, *changes, *report.unknown)]
    return clean_lines(lines[:-1] if lines[-1] == "" else lines)


def headline(report: Report) -> str:
    """Return what the training does, in one line."""
    since, words = find_phase_start(report), describe_phase(report)
    words += " (waiting for pods)" if report.waits_for_pods else ""
    if since:
        age = describe_seconds(report.now - since)
        words += f" {age} ago" if report.phase in ENDED_PHASES else f" for {age}"
    words += describe_restart(report)
    if report.attempt and report.attempt > 1:
        words += f", attempt {report.attempt}"
    if report.run_id:
        words += f", run {report.run_id}"
    if report.queue is not None:
        words += f", {describe_standing(report.queue)}"
    if report.source == FROM_PODS:
        words += " (by its pods: no record could be read)"
    where = f"{report.place}, {report.chart or report.key.chart}"
    return f"{report.key.release} ({where}): {words}"


def describe_standing(queue: QueueStanding) -> str:
    """Return "waits in queue team-a, position 3 of 5, needs 8 nvidia.com/gpu, 2 are free", as far as it is known."""
    words = f"waits in queue {queue.name}"
    if queue.position is not None:
        words += f", position {queue.position}" + (f" of {queue.length}" if queue.length else "")
    for resource, amount in queue.needs.items():
        words += f", needs {amount:g} {resource}"
        if queue.free is not None:
            free = queue.free.get(resource, 0.0)
            words += f", {free:g} {'is' if free == 1 else 'are'} free"
    return words


def _summary(report: Report) -> Iterator[str]:
    yield headline(report)
    outcome, progress, gpus = report.outcome, report.progress, report.gpus
    if outcome is not None:
        error = f": {outcome.error}" if outcome.error else ""
        yield f"  {outcome.sentence or outcome.cause} {outcome.pod}{error}".rstrip()
    if progress.step is not None or progress.metrics or progress.nan_metrics:
        speed = progress.examples_per_second
        parts = [] if progress.step is None else [f"step {progress.step}"]
        parts += [] if speed is None else [f"{speed:,.0f} examples/s"]
        parts += [f"{name} {number:g}" for name, number in progress.metrics.items()]
        parts += [f"{name} NaN" for name in progress.nan_metrics]
        seen = f" ({describe_seconds(report.now - progress.at)} ago)" if progress.at else ""
        if outcome is None and progress.before is not None and progress.step == progress.before:
            seen = " (before it was restarted)"
        yield f"  {', '.join(parts)}{seen}"
    if report.seems_to_hang or report.step_pause:
        # `why` shows problems instead of lines, and has no lines of a local run.
        advice = f"why {report.address} shows what its pods printed last"
        advice = f"logs {report.address}" if report.origin == LOCAL else "" if report.problems else advice
        yield f"  {describe_silence(report)}{f': trainchart {advice}' if advice else ''}"
    elif report.slowdown:
        yield f"  {describe_slowdown(report)}: trainchart why {report.address} says what to look at"
    if report.origin == LOCAL:
        yield from _record_lines(report)
    elif gpus is None:
        yield "  GPUs: not known"
    elif gpus:
        yield f"  holds {describe_gpus(gpus)} for {describe_seconds(report.now - report.gpus_since)}"
    else:
        yield "  holds no GPU"


def _record_lines(report: Report) -> Iterator[str]:
    """Yield what a local run was asked for and made of."""
    record, code = report.record, report.record.get("code") or {}
    hyperparameters = record.get("hyperparameters") or {}
    if record.get("command"):
        yield f"  command  {record['command']}"
    if hyperparameters:
        yield f"  with     {describe_hyperparameters(hyperparameters)}"
    if code.get("folder"):
        commit = f", commit {code['commit'][:12]}" if code.get("commit") else ""
        changed = " and changes since" if code.get("isDirty") else ""
        digest = f", sha256 {code['sha256'][:12]}" if code.get("sha256") else ""
        yield f"  code     {code['folder']}{commit}{changed}{digest}"
    yield f"  folder   {report.folder}"


def _pod_lines(pods: Sequence[PodReport], now: float) -> list[str]:
    plain = [pod for pod in pods if pod.state == "Running" and not pod.restarts and not pod.program_restarts]
    # The leading pods always; of the others first those that are not as they should be.
    shown = pods if len(pods) <= _PODS_SHOWN else [*pods[:2], *(pod for pod in pods[2:] if pod not in plain)]
    rows = [
        (pod.label, pod.state, pod.node or "-", _count_restarts(pod), describe_seconds(now - pod.created),
         describe_gpus(pod.gpus), pod.last_end or "-")
        for pod in shown[:_PODS_SHOWN]
    ]  # fmt: skip
    lines = make_table(("POD", "STATE", "NODE", "RESTARTS", "AGE", "GPUS", "LAST END"), rows)
    left = len(pods) - len(rows)
    return [*lines, f"and {left} more"] if left else lines


def _count_restarts(pod: PodReport) -> str:
    return f"{pod.restarts}, program {pod.program_restarts}" if pod.program_restarts else str(pod.restarts)


def setback_lines(report: Report) -> Iterator[str]:
    """Yield which steps were lost last, and what would have kept them."""
    setbacks, least = report.setbacks, "at least " if len(report.setbacks) >= SETBACKS_KEPT else ""
    if len(setbacks) > _SETBACKS_SHOWN:
        yield f"Steps were lost {least}{len(setbacks)} times. The last {_SETBACKS_SHOWN} times:"
    for each in setbacks[-_SETBACKS_SHOWN:]:
        lost = f"at least {each.reached - each.resumed} steps were lost"
        yield (
            f"{describe_time(each.at)}: {each.pod} was started again and continued from step {each.resumed} or "
            f"earlier, though it had reported step {each.reached}: {lost}."
        )
        if each.end == KILLED:
            role = each.pod.rpartition("-")[0].rpartition("-")[2]
            yield (
                f"  {each.pod} had not ended when its grace period was over, and was killed. If it handles SIGTERM, "
                f"roles.{role}.stopGraceSeconds is too short: raise it, or let the program save faster or more often. "
                "If not, let it save and exit on SIGTERM, as programs that use the training library do."
            )
    if setbacks:
        yield f"  trainchart checkpoints list {report.address} shows which steps are saved."


def problem_lines(problems: Sequence[ReportedProblem], address: str, notes: Sequence[str] = ()) -> list[str]:
    """Return what keeps pods from running, once for all pods with the same words, and what to do, once per cause.

    `address` finds the release. The `notes` that find_notes assigns to a cause come before its advice.
    """
    by_cause: dict[str, list[ReportedProblem]] = defaultdict(list)
    for problem in problems:
        by_cause[problem.cause].append(problem)
    lines = []
    for cause, alike in by_cause.items():
        groups: dict[str, list[ReportedProblem]] = defaultdict(list)
        for problem in alike:
            groups[problem.message].append(problem)
        for message, group in groups.items():
            lines += [_head_problem(cause, group), f"  {message}"]
        notes_here = find_notes(problems, cause, notes)
        lines += [f"  note: {note}" for note in notes_here]
        if hint := choose_problem_hint(alike, notes_here):
            names = [problem.subject for problem in alike]
            node = next((each.node for each in alike if each.node), "")
            words = fill_in(hint, address, names[0], node, others=names[1:], message=alike[0].message)
            lines.append(f"  next: {words}")
    return lines


def _head_problem(cause: str, group: Sequence[ReportedProblem]) -> str:
    names = ", ".join(problem.subject for problem in group[:_NAMES_SHOWN])
    more = f" and {len(group) - _NAMES_SHOWN} more" if len(group) > _NAMES_SHOWN else ""
    nodes = {problem.node for problem in group}
    node = f" on {group[0].node}" if group[0].node and len(nodes) == 1 else ""
    begin = min(problem.since for problem in group)
    since = f", since {describe_time(begin)}" if begin else ""
    return f"problem: {names}{more}{node}: {group[0].sentence or cause} [{cause}]{since}"


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def describe_gpus(count: Mapping[str, int]) -> str:
    """Return "4 nvidia.com/gpu", or "-" for none."""
    return ", ".join(f"{number} {resource}" for resource, number in count.items()) or "-"
