"""The termination message: what the launcher leaves behind about a program's end, as JSON of at most 4 KiB.

Times are Unix seconds with microseconds, because Kubernetes keeps whole seconds only and peers fail within
0.2 s of each other. Writing it to a file is the launcher's work.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime import causes
from trainchart_runtime.cause import RESTART_IN_PLACE_PEER
from trainchart_runtime.contract import TERMINATION_MESSAGE_LIMIT
from trainchart_runtime.log_text import clean, hide_credentials, shorten
from trainchart_runtime.progress import parse_count, parse_metrics, parse_number, parse_whole

LINES_KEPT = 20
LINE_LIMIT = 300
"""Characters kept of each of the last lines; one endless line must not push out all others."""
_SHORT = 60
_TEXT_LIMIT = 1000
"""Characters kept of another text of a message that is read: a controller keeps those of a thousand pods."""
FAILURES_KEPT = 10
"""Earlier ends of the program in one pod that its launcher remembers."""
_FAILURES_LEFT = 5
_FAILURE_LIMIT = 200
"""Characters of an earlier end's error in a termination message; its launcher tells more while it lives."""


_CAUSE = re.compile(r"[a-z][a-z0-9-]{0,59}")


class Failure(NamedTuple):
    """An end of the program that was no success, and after which its launcher started it again."""

    number: int
    """From 1, in the life of one pod."""
    at: float
    """Unix seconds."""
    cause: str
    exit_code: int
    error: str = ""


class Termination(NamedTuple):
    """The end of one program as its launcher saw it."""

    cause: str
    """A name of causes.CAUSES; a newer launcher may know more of them."""
    exit_code: int
    """What the launcher exits with: the program's code, 128 + n for signal n, 143 after a SIGTERM."""
    task_type: str = ""
    task_index: int = 0
    run_id: str = ""
    attempt: int = 0
    own_failures: int = 0
    peer_failures: int = 0
    signal: Optional[int] = None
    error: str = ""
    """The program's own words, such as the exception line."""
    step: Optional[int] = None
    metrics: Mapping[str, float] = {}
    started_at: float = 0.0
    finished_at: float = 0.0
    lines: Sequence[str] = ()
    ended: int = 0
    """Ends of the program in this pod that were no success, with this one if it was none."""
    failures: Sequence[Failure] = ()
    """Those before this one that were seen last, oldest first."""

    @property
    def succeeded(self) -> bool:
        return self.cause == causes.SUCCEEDED.name


_KEYS = {
    "cause": "cause",
    "exit_code": "exitCode",
    "task_type": "taskType",
    "task_index": "taskIndex",
    "run_id": "runId",
    "attempt": "attempt",
    "own_failures": "ownFailures",
    "peer_failures": "peerFailures",
    "signal": "signal",
    "error": "error",
    "step": "step",
    "metrics": "metrics",
    "started_at": "startedAt",
    "finished_at": "finishedAt",
    "lines": "lines",
    "ended": "ended",
    "failures": "failures",
}


def dump_termination(message: Termination) -> bytes:
    """Return the message as JSON that fits: the oldest lines go first, then the metrics, then long texts."""
    for candidate in _ever_shorter(message):
        body = _encode(candidate)
        if len(body) <= TERMINATION_MESSAGE_LIMIT:
            return body
    raise AssertionError("the shortest termination message does not fit")


def parse_termination(text: str) -> Optional[Termination]:
    """Parse a termination message; None for whatever no launcher has written."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    cause, exit_code = document.get("cause"), parse_whole(document.get("exitCode"))
    if not isinstance(cause, str) or exit_code is None:
        return None
    return Termination(
        # A newer launcher may know more of them, but the program can write anything in their place.
        cause=cause if _CAUSE.fullmatch(cause) else causes.PROGRAM_EXIT.name,
        exit_code=exit_code,
        task_type=_text(document, "taskType"),
        task_index=parse_count(document.get("taskIndex")) or 0,
        run_id=_text(document, "runId"),
        attempt=parse_count(document.get("attempt")) or 0,
        own_failures=parse_count(document.get("ownFailures")) or 0,
        peer_failures=parse_count(document.get("peerFailures")) or 0,
        signal=parse_whole(document.get("signal")),
        error=_tame(_text(document, "error")),
        step=parse_whole(document.get("step")),
        metrics=parse_metrics(document.get("metrics")),
        started_at=float(parse_number(document.get("startedAt")) or 0.0),
        finished_at=float(parse_number(document.get("finishedAt")) or 0.0),
        lines=_parse_lines(document.get("lines")),
        ended=parse_count(document.get("ended")) or 0,
        failures=parse_failures(document.get("failures")),
    )


def dump_failures(failures: Sequence[Failure]) -> List[Dict[str, Any]]:
    """Return failures as what json.dumps can write."""
    return [
        {
            "number": each.number,
            "at": round(each.at, 6),
            "cause": each.cause,
            "exitCode": each.exit_code,
            "error": each.error,
        }
        for each in failures
    ]


def parse_failures(value: Any) -> Tuple[Failure, ...]:
    """Read the last FAILURES_KEPT failures of parsed JSON; what is none is left out.

    The program may have written them. Their causes become labels of metrics, so they are of a closed list.
    """
    found = []
    for each in value[-FAILURES_KEPT:] if isinstance(value, list) else ():
        document = each if isinstance(each, dict) else {}
        number, at = parse_count(document.get("number")), parse_number(document.get("at"))
        if number is not None and number > 0 and at is not None and _text(document, "cause"):
            cause, error = _text(document, "cause"), shorten(clean(_text(document, "error")), LINE_LIMIT)
            cause = cause if cause in causes.CAUSES else causes.PROGRAM_EXIT.name
            found.append(Failure(number, float(at), cause, parse_whole(document.get("exitCode")) or 0, error))
    return tuple(found)


def find_first_failure(messages: Mapping[str, Termination]) -> Optional[str]:
    """Return the key of the pod that failed first and not because of a peer; None where no pod failed.

    Where every failure follows a peer's (the one that went away left no message), the earliest counts.
    """
    quiet = (causes.SUCCEEDED.name, causes.TERMINATED.name)
    failed = {pod: message for pod, message in messages.items() if message.cause not in quiet}
    origins = {pod: message for pod, message in failed.items() if not follows_a_peer(message)}
    candidates = origins or failed
    # The name settles a tie, so that the answer does not depend on the order of the mapping.
    return min(candidates, key=lambda pod: (candidates[pod].finished_at, pod), default=None)


def follows_a_peer(message: Termination) -> bool:
    """Return whether a failure is the consequence of another task's end."""
    cause = causes.CAUSES.get(message.cause)
    return cause is not None and cause.restart == RESTART_IN_PLACE_PEER


def _ever_shorter(message: Termination) -> Iterator[Termination]:
    lines = tuple(line[:LINE_LIMIT] for line in message.lines[-LINES_KEPT:])
    failures = tuple(
        each._replace(error=shorten(each.error, _FAILURE_LIMIT)) for each in message.failures[-_FAILURES_LEFT:]
    )
    message = message._replace(failures=failures)
    for start in range(len(lines)):
        yield message._replace(lines=lines[start:])
    yield message._replace(lines=())
    bare = message._replace(lines=(), metrics={}, failures=())
    yield bare
    yield bare._replace(
        error=shorten(bare.error, LINE_LIMIT),
        cause=bare.cause[:_SHORT],
        task_type=bare.task_type[:_SHORT],
        run_id=bare.run_id[: 2 * _SHORT],
    )


def _encode(message: Termination) -> bytes:
    document: Dict[str, Any] = {_KEYS[field]: value for field, value in message._asdict().items()}
    document["lines"] = list(message.lines)
    document["metrics"] = dict(message.metrics)
    document["failures"] = dump_failures(message.failures)
    for field in ("startedAt", "finishedAt"):
        document[field] = round(document[field], 6)
    # Text from a program may hold lone surrogates, which UTF-8 cannot carry.
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return value[:_TEXT_LIMIT] if isinstance(value, str) else ""


def _parse_lines(value: Any) -> Tuple[str, ...]:
    kept = value[-LINES_KEPT:] if isinstance(value, list) else ()
    return tuple(_tame(line[:LINE_LIMIT]) for line in kept if isinstance(line, str))


def _tame(text: str) -> str:
    """Return what a program has printed as it may stand in records and Events."""
    return hide_credentials(clean(text))
