"""Lines of pods' logs as the Kubernetes API gives them: their times, their order, and what was kept of them. Pure."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainchart.cluster.record import KeptLog
from trainchart.cluster.snapshot import MOST_PODS
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import Report
from trainchart_runtime.contract import BUSY_IN, LAUNCHER_PREFIX, STACK_LINE, WAITS_IN
from trainchart_runtime.kept_logs import LEFT_OUT
from trainchart_runtime.log_text import hide_credentials, is_warning
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import FAILED

LEAD_SECONDS = 2.0
"""A program prints its error some time before it ends."""
_VERDICT_LEAD_SECONDS = 15.0
"""A verdict comes some seconds after the failure, which may have been recorded nowhere else."""
_WARNINGS_SHOWN = 3
"""Of one pod."""
_WARNERS_SHOWN = 8
_TIMES = 3
"""A warning that is printed as often is repeated."""
_BURST_SECONDS = 2.0
_OVER_SECONDS = 60.0
NO_SPACE = "No space left on device"
_TRACEBACK = "Traceback (most recent call last):"
CHAIN = re.compile(rf"{re.escape(_TRACEBACK)}|^During handling of the above|^The above exception was the direct")
_FRAME = re.compile(r'  File "')
EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(: |$)")
_MEANWHILE = ". No step was made meanwhile. Fix what it warns about first: the program may skip steps because of it"
_ATTEMPT_ENDED = re.compile(rf"^{LAUNCHER_PREFIX}.*\battempt \d+ ended")
_ECHO = re.compile(
    r"different incarnation|stopped sending heartbeats|StartAbort |Aborting \w+ with |Restart your program to reset"
    r"|ops is aborted by: (Error reported from|recv)|Connection reset by peer|Socket closed"
    r"|Additional GRPC error information from remote target"
)
"""What TensorFlow prints in all tasks when one has gone: nothing that came before."""
_ROUTINE = re.compile(r"\bdeprecated\b|deprecation\.py")
"""Warnings of programs that work."""
_STACK = f"{LAUNCHER_PREFIX}{STACK_LINE}"
_WHERE = re.compile(rf"^{LAUNCHER_PREFIX}.*(?P<how>{re.escape(WAITS_IN)}|{re.escape(BUSY_IN)})(?P<place>.+)")
_THREAD = re.compile(r"Exception in thread [^:]+")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)")


def parse_line(label: str, raw: str) -> LogLine:
    """Parse a line that the API has put a time before; nodes may write it in their own time zone."""
    stamp, _, text = raw.partition(" ")
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return LogLine("", label, raw)
    seconds, fraction, zone = match.groups()
    if zone != "Z":
        local = datetime.fromisoformat(seconds)
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)
        seconds = (local - offset).isoformat()
    return LogLine(f"{seconds}.{(fraction or '')[:9]:0<9}Z", label, text)


def stamp_of(seconds: float) -> str:
    """Return a time in Unix seconds as lines carry it; empty, so before all others, for one that makes no sense."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}000Z"
    except (OverflowError, OSError, ValueError):
        return ""


def merge_logs(logs: Iterable[Sequence[LogLine]]) -> Iterator[LogLine]:
    """Yield the lines of several pods by time; the lines of one stay in their order."""
    return heapq.merge(*logs, key=lambda line: line.at)


def find_failure_time(report: Report) -> float | None:
    """Return from when on logs show the failure that `why` explains; None where there was none."""
    outcome = report.outcome
    if outcome is not None and outcome.result == FAILED:
        deaths = [each.at for each in report.incidents if each.pod == outcome.pod and 0 < each.at <= outcome.at]
        return max(deaths) - LEAD_SECONDS if deaths else outcome.at - _VERDICT_LEAD_SECONDS
    deaths = [each.at for each in report.incidents if each.at > 0]
    return max(deaths) - LEAD_SECONDS if deaths else None


def add_last_words(lines: Iterable[LogLine], report: Report) -> Iterator[LogLine]:
    """Yield the failing program's last lines first, where its log does not hold them any more.

    Kubernetes keeps the logs of two containers a pod; the launcher's last words outlive them.
    """
    outcome = report.outcome
    present = list(lines)
    if outcome is not None and outcome.result == FAILED and outcome.lines:
        labels = {pod.name: pod.label for pod in report.pods or ()}
        label = labels.get(outcome.pod, outcome.pod)
        if not any(line.label == label and hide_credentials(line.text) == outcome.lines[-1] for line in present):
            yield from (LogLine("", label, line) for line in outcome.lines)
    yield from present


def find_kept_lines(kept: Sequence[KeptLog], report: Report, labels: Mapping[str, str]) -> list[LogLine]:
    """Return what the record kept of the logs of pods that are gone, pod by pod; `labels` are their short names."""
    logs = list(kept)
    outcome = report.outcome
    # The container that failed may have been gone when the others' lines were fetched; its launcher's words were not.
    if outcome is not None and outcome.lines and outcome.pod not in {log.pod for log in kept}:
        logs.insert(0, KeptLog(outcome.pod, outcome.at, tuple(outcome.lines)))
    return [LogLine("", labels.get(log.pod, log.pod), line) for log in logs for line in log.lines]


def describe_gaps(kept: Sequence[KeptLog], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield of which pods the record has no lines, and of which only a part; one that printed none lacks none."""
    present = {log.pod for log in kept}
    unkept = [label for pod, label in labels.items() if pod not in present]
    cut = [labels[log.pod] for log in kept if log.pod in labels and LEFT_OUT in log.lines]
    if unkept:
        names, is_one = list_names(unkept), len(unkept) == 1
        gone = "its pod was gone, or its log was" if is_one else "their pods were gone, or their logs were"
        yield f"no lines of {names} were kept: when the run ended, {gone} gone or could not be read in time"
    if cut:
        yield f"only some of the last lines of {list_names(cut)} were kept: {LEFT_OUT} stands for the others"


def find_warnings(kept: Sequence[KeptLog], report: Report, labels: Mapping[str, str]) -> list[LogLine]:
    """Return the first warnings in what was kept of the pods beside the one that failed: they may come before it."""
    failed = report.outcome.pod if report.outcome else ""
    found = []
    for log in kept:
        own = [
            line
            for line in dict.fromkeys(_list_warnings(log.lines))
            if not (_ECHO.search(line) or _ROUTINE.search(line))
        ]
        if own and log.pod != failed:
            found.append([LogLine("", labels.get(log.pod, log.pod), line) for line in own[:_WARNINGS_SHOWN]])
    return [line for lines in found[:_WARNERS_SHOWN] for line in lines]


def _list_warnings(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that warn; of a traceback, only that of the exception, whatever its name is."""
    is_inside = False
    for line in lines:
        if CHAIN.search(line) or _FRAME.match(line):
            is_inside = True
        elif is_inside and (not line.strip() or line[:1].isspace()):
            continue
        else:
            if is_warning(line) or (is_inside and EXCEPTION.match(line)):
                yield line
            is_inside = False


def find_exceptions(logs: Iterable[Sequence[LogLine]]) -> Iterator[LogLine]:
    """Yield the last exception in each pod's log: of a thread, it ends no program, and all else may wait for it."""
    for whole in logs:
        lines = drop_ended_attempts(whole)
        heads = [index for index, line in enumerate(lines) if _TRACEBACK in line.text]
        if not heads:
            continue
        rest = lines[heads[-1] + 1 :]
        # Its frames are indented; then comes its own line. Other threads print in between.
        own = next((line for line in rest if EXCEPTION.match(line.text)), None)
        thread = _THREAD.search(lines[heads[-1] - 1].text) if heads[-1] else None
        if own is not None:
            words = f" ({thread.group().lower()})" if thread else ""
            yield LogLine(own.at, own.label, own.text + words)


def describe_repeated_warnings(
    logs: Iterable[Sequence[LogLine]], claims: Mapping[str, Sequence[str]], silent_since: float = 0.0
) -> Iterator[str]:
    """Yield the warnings that running pods print again and again; `claims` are the volume claims of each by its label.

    Numbers in them may differ, such as steps. `silent_since` is when the last step came, where none comes any more.
    """
    for lines in logs:
        alike: dict[str, list[LogLine]] = {}
        for line in drop_ended_attempts(lines):
            if is_warning(line.text) and not CHAIN.search(line.text):
                alike.setdefault(re.sub(r"\d+", "0", line.text), []).append(line)
        end = parse_time(lines[-1].at) if lines else 0.0
        often = [same for same in alike.values() if len(same) >= _TIMES]
        repeated = [same for same in often if not _is_burst(same) and not _is_over(same, end)]
        for same in repeated[:_WARNINGS_SHOWN]:
            first, last = same[0], same[-1]
            yield (
                f"{last.label} prints the same warning again and again ({len(same)} times from {first.at[11:19]} to "
                f"{last.at[11:19]} UTC): {last.text.strip()}{_advise_on_space(last, claims.get(last.label, ()))}"
                f"{_MEANWHILE if 0 < silent_since < parse_time(last.at) else ''}"
            )


@dataclass(frozen=True)
class LastLine:
    """A pod's last line, and where its program waits or computes since then, as far as its launcher found out."""

    line: LogLine | None
    waits: LogLine | None = None
    busy: LogLine | None = None


def find_last_line(lines: Sequence[LogLine]) -> LastLine:
    """Return what the program of a pod printed last, and where it has been since."""
    own = [line for line in lines if not (line.text.startswith(_STACK) or _WHERE.match(line.text))]
    last = own[-1] if own else None
    found = _WHERE.match(lines[-1].text) if lines else None
    if found is None:
        return LastLine(last)
    where = LogLine(lines[-1].at, lines[-1].label, found["place"])
    return LastLine(last, waits=where) if found["how"] == WAITS_IN else LastLine(last, busy=where)


def drop_ended_attempts(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of the program that goes on: what ended programs printed is told by their deaths."""
    ends = [index for index, line in enumerate(lines) if _ATTEMPT_ENDED.match(line.text)]
    return lines[ends[-1] + 1 :] if ends else lines


def _is_burst(lines: Sequence[LogLine]) -> bool:
    """Say whether all lines are of one moment, as when a peer is lost: that is one warning."""
    return parse_time(lines[-1].at) - parse_time(lines[0].at) < _BURST_SECONDS


def _is_over(lines: Sequence[LogLine], end: float) -> bool:
    """Say whether the program has printed other lines since then for much longer than these, up to `end`."""
    first, last = parse_time(lines[0].at), parse_time(lines[-1].at)
    return end - last > max(_OVER_SECONDS, 3 * (last - first))


def _advise_on_space(line: LogLine, claims: Sequence[str]) -> str:
    """Return what to do about a full volume, as the end of a sentence; "" where a line tells of none."""
    if NO_SPACE not in line.text:
        return ""
    where = f"a volume ({list_names([f'claim {claim}' for claim in claims])}, or /tmp)" if claims else "/tmp"
    return (
        f". Free space in {where} now, and do not suspend, stop or upgrade the run before it has saved again: its "
        "steps since the last checkpoint would be lost"
    )


def name_pods(report: Report) -> dict[str, str]:
    """Return the short name of each pod that the training is to have, by its name."""
    return {
        f"{role.set_name}-{index}": f"{role.role}-{index}"
        for role in report.roles
        if role.set_name
        for index in range(min(role.wanted, MOST_PODS))
    }
