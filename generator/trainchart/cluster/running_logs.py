"""Says what logs show of dead threads, of data that ended early, and of tasks that are not connected. Pure.

Nothing has failed for the run controller then, and no step is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trainchart.cluster.log_lines import CHAIN, EXCEPTION, NO_SPACE, drop_ended_attempts
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import SILENT_SECONDS, Report
from trainchart_runtime.contract import LAUNCHER_PREFIX, PEER_REFUSES
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import SUCCEEDED
from trainchart_runtime.running_causes import NOT_CONNECTED

_HEAD = re.compile(r"(?:Exception in thread (?P<thread>.+)|Process (?P<process>[\w-]+)):\s*$")
"""How Python begins to tell that a thread, or a process of multiprocessing, has ended with an exception."""
_WAITS = re.compile(rf"{LAUNCHER_PREFIX}waiting for \d+ peers? for (?P<seconds>\d{{1,9}}) s: (?P<peers>.+)")
_REFUSES = re.compile(rf":(\d+) \({PEER_REFUSES}\)")
_ENDED = re.compile(r"\battempt \d++ ended ")
_SUCCEEDED = ", succeeded "
_NO_MORE_DATA = "Your input ran out of data"
"""How Keras begins to warn that a dataset has fewer batches than an epoch has steps."""
_ANSWERED = f"{LAUNCHER_PREFIX}all peers have answered"
_LONG_SECONDS = 120
"""A peer that is still loading, or was restarted, is up earlier."""


def describe_dead_threads(logs: Sequence[Sequence[LogLine]], claims: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield which threads of programs that go on have ended with an exception, once for the same error.

    `claims` are the volume claims of each pod by its label.
    """
    found: dict[tuple[str, str], list[tuple[LogLine, str]]] = {}
    for lines in logs:
        for line, kind, name in _find_thread_error(drop_ended_attempts(lines)):
            found.setdefault((kind, re.sub(r"\d+", "0", line.text)), []).append((line, name))
    for (kind, _), same in found.items():
        (line, name), one = same[0], len(same) == 1
        kinds = f"{kind}es" if kind.endswith("s") else f"{kind}s"
        at = f", {line.at[11:19]} UTC" if line.at else ""
        whose = f"a {kind} of {line.label}" if one else f"{kinds} of {list_names([each.label for each, _ in same])}"
        they = "its program continues without it" if one else "their programs continue without them"
        yield (
            f"{whose} {'has' if one else 'have'} died, and {they}: {line.text} ({name}{at}). Its work, for example "
            "saving checkpoints or reading data, no longer happens. If it saved checkpoints, the steps since then are "
            f"lost when the pod ends. {_advise(line, kind, claims.get(line.label, ()))}. Also let the program exit "
            f"when a {kind} fails"
        )


def _advise(error: LogLine, kind: str, claims: Sequence[str]) -> str:
    if NO_SPACE not in error.text:
        return "Fix the error"
    places = list_names([*(f"claim {claim}" for claim in claims), "/tmp"])
    return f"Free space where it writes ({places}), then restart the program: the {kind} does not come back by itself"


def _find_thread_error(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, str, str]]:
    """Yield the last exception that ended a thread or process, which of them it was, and its name."""
    heads = [(index, found) for index, line in enumerate(lines) if (found := _HEAD.match(line.text))]
    if not heads:
        return
    index, head = heads[-1]
    error, is_awaited = None, True
    for line in lines[index + 1 :]:
        if CHAIN.search(line.text):
            is_awaited = True
        elif is_awaited and EXCEPTION.match(line.text):
            error, is_awaited = line, False
        # What other threads print stands between the lines of a traceback.
        elif not is_awaited and line.text.strip() and not line.text[:1].isspace():
            break
    if error is not None:
        kind = "thread" if head["thread"] else "process"
        yield error, kind, head[kind]


def describe_short_data(logs: Sequence[Sequence[LogLine]]) -> Iterator[str]:
    """Yield which of several programs had no more data, as Keras warned: those that train in step wait for them."""
    current = [_drop_failed_attempts(lines) for lines in logs]
    short = [line for lines in current for line in reversed(lines) if _NO_MORE_DATA in line.text]
    labels = list(dict.fromkeys(line.label for line in short))
    if not labels or len(labels) == len(logs):
        return
    times = {line.label: line.at[11:19] for line in reversed(short) if line.at}
    whose = list_names([f"{label} ({times[label]} UTC)" if label in times else label for label in labels])
    yield (
        f"{whose} ran out of data before the others, as Keras warned, and tasks that train in step then wait for "
        "each other: give every task the same number of batches. Repeat the dataset (repeat()) and set "
        "steps_per_epoch, or shard by element instead of by file (AutoShardPolicy.DATA)"
    )


def describe_lone_tasks(report: Report, logs: Sequence[Sequence[LogLine]]) -> Iterator[str]:
    """Yield which tasks make steps though their peers have refused connections all the time."""
    if any(problem.cause == NOT_CONNECTED.name for problem in report.problems):
        return  # told there
    has_succeeded = report.outcome is not None and report.outcome.result == SUCCEEDED
    is_recent = report.outcome is None and report.now - report.progress.at < SILENT_SECONDS
    if report.progress.step is None or not (has_succeeded or is_recent):
        return
    refusing = {lines[0].label: found for lines in logs if lines and (found := _find_refused_ports(lines))}
    if refusing:
        names, ports = list(refusing), sorted({port for each in refusing.values() for port in each})
        makes = (
            "made steps, but their programs did not connect to each other"
            if len(names) > 1
            else "made steps, but its program did not connect to its peers"
        )
        yield (
            f"{list_names(names)} {makes}: their peers did not listen on port {list_names(ports)}, which TensorFlow's "
            "servers use. Each task therefore trained its own model, and several may have written the same files. If "
            "they should train together, check whether the code or `env` removes or replaces TF_CONFIG "
            "(os.environ.pop, as in tutorials), or creates the strategy without it"
        )


def _drop_failed_attempts(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines of the program that goes on, or has succeeded."""
    ends = [number for number, line in enumerate(lines) if _says_success(line.text)]
    return drop_ended_attempts(lines[: ends[-1]] if ends else lines)


def _says_success(text: str) -> bool:
    ended = _ENDED.search(text, len(LAUNCHER_PREFIX)) if text.startswith(LAUNCHER_PREFIX) else None
    return ended is not None and _SUCCEEDED in text[ended.end() :]


def _find_refused_ports(lines: Sequence[LogLine]) -> set[str]:
    """Return the ports at which peers have refused connections for long while a program printed more."""
    current = _drop_failed_attempts(lines)
    words = [
        number for number, line in enumerate(current) if line.text.startswith((_ANSWERED, f"{LAUNCHER_PREFIX}waiting"))
    ]
    last = _WAITS.match(current[words[-1]].text) if words else None
    goes_on = any(not line.text.startswith(LAUNCHER_PREFIX) for line in current[words[-1] + 1 :]) if words else False
    if last is None or not goes_on or int(last["seconds"]) < _LONG_SECONDS:
        return set()
    return set(_REFUSES.findall(last["peers"]))
