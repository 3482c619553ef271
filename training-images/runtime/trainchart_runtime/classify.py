"""Pick the cause of a program's end from its exit code, its signal and its last lines.

Pure text work. The exception that ended the program counts, not what it or TensorFlow logged before: a
healthy parameter-server chief logs UNAVAILABLE too while a worker restarts.
"""

from __future__ import annotations

import itertools
import re
from signal import Signals
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime import causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.cause_words import CAUSES_BY_WORDS
from trainchart_runtime.contract import EXIT_PEER_LOST
from trainchart_runtime.log_text import INFORMATION, hide_credentials
from trainchart_runtime.restart import STEADY_SECONDS

ERROR_LIMIT = 500
"""Characters of an error line that are worth keeping."""
_COMPLETED = 20
"""Exceptions of a chain, from the last, whose reasons are looked for, and how deep each: no one reads more."""
_LAST_WORDS = 3
"""Without a traceback, only so many of the last lines may say why the program ended."""
_CRASH_WORDS = 40
"""A native abort prints its reason some lines above the stack trace."""
_KILLED = 9
_USAGE_ERROR = 2
"""The exit code of argparse, click and shells for arguments, and of the training library for settings."""
_SHELL_SIGNAL = 128
"""A shell passes its program's end by signal n on as exit code 128 + n."""


class Ending(NamedTuple):
    """How a program ended: exactly one of `exit_code` and `signal` is set."""

    exit_code: Optional[int] = None
    signal: Optional[int] = None
    lines: Sequence[str] = ()
    """The last lines of its output, without newlines."""
    command: Sequence[str] = ()
    stopped: bool = False
    """The launcher forwarded a request to stop."""
    stalled: bool = False
    """The watchdog ended it."""
    superseded_by: str = ""
    """Who has taken over the task."""
    lost_storage: str = ""
    """Why the launcher could not know any more who owns the task."""
    memory_kills: int = 0
    """Processes of the container that the kernel killed for memory meanwhile, as far as the container can know."""
    memory_limit_mib: Optional[int] = None
    """The container's limit; None without one."""


class Diagnosis(NamedTuple):
    """Why a program ended, and the program's own words for it (one line, maybe empty)."""

    cause: Cause
    error: str = ""


def classify(ending: Ending) -> Diagnosis:
    """Return why a program ended."""
    if ending.stopped:
        return Diagnosis(causes.TERMINATED)
    if ending.superseded_by:
        return Diagnosis(causes.SUPERSEDED, _cut(ending.superseded_by))
    if ending.lost_storage:
        return Diagnosis(causes.STORAGE_LOST, _cut(ending.lost_storage))
    errors = find_errors(ending.lines)
    if ending.exit_code == 0 and not ending.stalled:
        return Diagnosis(causes.SUCCEEDED)
    if ending.stalled:
        cause, error = causes.NO_PROGRESS, errors[0] if errors else ""
    elif ending.memory_kills and _KILLED in (ending.signal, (ending.exit_code or 0) - _SHELL_SIGNAL):
        return Diagnosis(
            causes.OUT_OF_MEMORY,
            f"the kernel killed the program for memory; {_describe_limit(ending.memory_limit_mib)}",
        )
    else:
        cause, error = _by_signal(ending, errors) if ending.signal else _by_exit(ending, errors)
    kills = describe_memory_kills(ending.memory_kills, ending.memory_limit_mib) if ending.memory_kills else ""
    return Diagnosis(cause, _cut(error, f" ({kills})" if kills else ""))


_REPEATABLE = (
    causes.PROGRAM_ERROR,
    causes.PROGRAM_EXIT,
    causes.WORKERS_DIFFER,
    causes.CRASHED,
    causes.OUT_OF_MEMORY,
    causes.ACCESS_REFUSED,
    causes.MESSAGE_TOO_LARGE,
    causes.CHECKPOINT_DAMAGED,
)
_MAY_PASS = re.compile(
    r"time-?(d )?-?out|deadline.?exceeded|temporar|try again|connection|unavailable|unreachable|aborted|cancell?ed"
    r"|address already in use|stale file handle|input/output error|\b(429|50[0234])\b",
    re.IGNORECASE,
)
"""Errors of networks, storage and other tasks, which may be gone at the next start."""
_CHANGING = re.compile(
    r"0x[0-9a-f]+|\b[IWEF]?\d{4} \d\d:\d\d:[\d.]+\s+\d+|(\d{4}-\d\d-\d\d.)?\d\d:\d\d:\d\d([.,]\d+)?"
    r"|\bp(id|rocess)( id)?\W{0,3}\d+|(?<=/proc/)\d+|(?<=Thread-)\d+|(?<=Process-)\d+"
    r"|(?<=/tmp)[\w.-]{6,}|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d+(\.\d+)? ?m?s(ec(ond)?s?)?\b",
    re.IGNORECASE,
)
"""Different in the same error: addresses in memory, times, durations, ids of processes and threads, temporary files."""


def identify_failure(diagnosis: Diagnosis, step: Optional[int], ran_seconds: float) -> str:
    """Return what a failure shares with every other that has the same reason; "" where the next start may go well."""
    cause, error = diagnosis
    if cause not in _REPEATABLE or not error or (cause is not causes.WORKERS_DIFFER and _MAY_PASS.search(error)):
        return ""
    if step is None and ran_seconds >= STEADY_SECONDS:
        # A program that reports no steps may have come further each time.
        return ""
    return f"{cause.name} at step {step}: {_CHANGING.sub('', error)}"


def find_errors(lines: Sequence[str]) -> List[str]:
    """Return the exception lines of the traceback that ended a Python program, the last of a chain first."""
    chains = _find_chains(lines)
    for noise in (False, True):
        # A destructor or a background thread may print a traceback after the one that matters.
        for is_noise, chain in reversed(chains):
            if is_noise == noise and chain:
                last = [_complete(error, lines, number) for number, error in chain[: -_COMPLETED - 1 : -1]]
                return last + [error for _, error in chain[-_COMPLETED - 1 :: -1]]
    return []


_TRACEBACK = re.compile(r"^\W*(Exception Group )?Traceback \(most recent call last\):")
_NOISE = re.compile(r"^(Exception ignored |Exception in thread |Error in atexit)")
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_EXCEPTION = re.compile(r"^(?:  \| )?([A-Za-z_][\w.]*)(?:: .*|:)?$")
_SYNTAX = re.compile(r"^(SyntaxError|IndentationError|TabError): ")
_PLACE = re.compile(r'^\s*(?:\| )?File "([^"]+)", line (\d+)$')
_VAGUE = "Graph execution error:"
"""TensorFlow's exceptions begin so, whatever went wrong: the reason stands below where in the graph it happened."""
_HEADING = re.compile(r"\bFrom /job:\S+:$|\d+ root error\(s\) found\.$")
"""An error in another task, or several: the reason stands in the next line."""
_TRACED = ": in user code:"
"""The exception inside a tf.function or a step of Keras stands below, indented, behind the places that led to it."""
_INNER = re.compile(r"^    [A-Za-z_][\w.]*: ")
_CALLING = re.compile(r": Exception encountered when calling [^:]*\.$")
"""Keras names the layer in the line, and the reason in the next one that is not empty."""
_RPC = re.compile(r"<\w+ of RPC that terminated with:$")
_RPC_FIELD = re.compile(r'^\s+(?:status = StatusCode\.(\w+)|details = "([^"].*?)"?)$')
"""gRPC prints its status and the server's words in the two lines below."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_WHERE = re.compile(r"Detected at |Node: |<stack traces unavailable>|File |\d+ root error|=+$|\[\[|Traceback ")
_OWN_WORDS = re.compile(r"^(?:\d\d:\d\d:\d\d )?(error: \S.*)")
"""The last line of a program that catches its exception, prints it, and says what it means."""


def _find_chains(lines: Sequence[str]) -> List[Tuple[bool, List[Tuple[int, str]]]]:
    """Return (is noise, (number, exception line) in printed order) of every chain of tracebacks."""
    chains: List[Tuple[bool, List[Tuple[int, str]]]] = []
    inside = linked = False
    before = ""
    for number, line in enumerate(lines):
        if _TRACEBACK.match(line):
            if not linked:
                chains.append((bool(_NOISE.match(before)), []))
            inside, linked = True, False
        elif _SYNTAX.match(line):
            # A syntax error in the program itself has no "Traceback" heading.
            if not inside:
                chains.append((False, []))
            chains[-1][1].append((number, _locate(line, lines[max(0, number - 6) : number])))
            inside = False
        elif inside and _EXCEPTION.match(line):
            chains[-1][1].append((number, line.replace("  | ", "")))
            inside = False
        elif line in _CHAINED:
            linked = bool(chains)
        before = line or before
    return chains


def _locate(error: str, above: Sequence[str]) -> str:
    """Return the line of a syntax error with the file and line that Python names above it."""
    place = next((found for line in reversed(above) for found in [_PLACE.match(line)] if found), None)
    return f"{error} ({place.group(1)}, line {place.group(2)})" if place else error


def _complete(error: str, lines: Sequence[str], number: int) -> str:
    """Return the exception line `error`, with the reason from below its `number` where TensorFlow or Keras put it."""
    for _ in range(_COMPLETED):
        if not error.endswith(_TRACED):
            break
        inner = next((below for below in range(number + 1, len(lines)) if _INNER.match(lines[below])), None)
        if inner is None:
            break
        number, error = inner, lines[inner].strip()
    below = itertools.islice(lines, number + 1, None)
    if _RPC.search(error):
        fields = [field for line in itertools.islice(below, 2) for field in [_RPC_FIELD.match(line)] if field]
        words = ": ".join(field.group(1) or field.group(2) for field in fields)
        return f"{error.partition(':')[0]}: {words}" if words else error
    if _CALLING.search(error):
        plain = (_COLOURS.sub("", line).strip() for line in below)
        reason = next((line for line in plain if line), "")
        return f"{error.partition(':')[0]}: {reason}" if reason else error
    if error.endswith(_VAGUE):
        return error[: -len(_VAGUE)] + (_find_reason(below) or _VAGUE)
    if _HEADING.search(error):
        return f"{error} {_find_reason(below)}".strip()
    after = next(below, "") if error.endswith(":") and not error.endswith(_TRACED) else ""
    return f"{error} {after.strip()}" if after[:1] in ("\t", " ") and after.strip() else error


def _find_reason(below: Iterable[str]) -> str:
    """Return the first line of TensorFlow's that does not say where something happened."""
    lines = (line.strip().replace("(0) ", "", 1) for line in below)
    reasons = (line for line in lines if line and not _WHERE.match(line))
    reason = next(reasons, "")
    return f"{reason} {next(reasons, '')}".strip() if _HEADING.search(reason) else reason


_KERAS_FIT = re.compile(
    r"Attempt to convert a value \(PerReplica|Unrecognized data type: x=<tensorflow\.python\.distribute"
    r"|need to pass this dataset to ClusterCoordinator\.create_per_worker_dataset"
)
"""What Keras 3 says, and a step of the program's own may say as well: the traceback tells which it is."""
_KERAS_FRAME = "/keras/src/"
_KERAS_ON_BATCH = "in reduce_per_replica"
"""Where Keras 3's train_on_batch and test_on_batch fail. The error itself says nothing of replicas."""

_NOT_STARTED = (
    re.compile(r"can't open file '"),
    re.compile(r"^\S*python[\d.]*: (No module named|Error while finding module specification for) "),
)
_WRONG_ARCHITECTURE = re.compile(r"[Ee]xec format error|cannot execute binary file")
_USAGE = re.compile(r"^\s*usage: ", re.IGNORECASE)
_BOX = re.compile(r"^\s*╭─ Error ─")
_REFUSED = re.compile(r"\berror: |^FATAL Flags parsing error", re.IGNORECASE)
_COMPLAINT = re.compile(r"error|fatal|exception|failed|cannot", re.IGNORECASE)

_RAISES = re.compile(r"^raise\b|\b(raise_signal|interrupt_main|kill|killpg)\(")
"""How a program interrupts itself; the interrupt of another process comes anywhere else, and says nothing."""
_CRASH_SIGNALS = tuple(
    Signals[name] for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS")
)


def _by_signal(ending: Ending, errors: Sequence[str]) -> Tuple[Cause, str]:
    if ending.signal == Signals.SIGINT and errors and errors[0].startswith("KeyboardInterrupt"):
        # Python ends itself by this signal after the exception, wherever that came from.
        is_own = _RAISES.search(_last_call(errors[0], ending.lines)) or errors[0] != "KeyboardInterrupt"
        return (causes.PROGRAM_ERROR if is_own else causes.KILLED), errors[0]
    if ending.signal not in _CRASH_SIGNALS:
        return causes.KILLED, ""
    # TensorFlow aborts itself when its coordination service reports a lost task.
    found = _by_words(ending.lines[-_CRASH_WORDS:])
    if found and found[0] in (causes.PEER_LOST, causes.OUT_OF_MEMORY, causes.MACHINE_LIMIT, causes.OPEN_FILES):
        return found
    cause = causes.BUS_ERROR if ending.signal == Signals.SIGBUS else causes.CRASHED
    return cause, _last_complaint(ending.lines)


def _by_exit(ending: Ending, errors: Sequence[str]) -> Tuple[Cause, str]:
    for line in reversed(ending.lines):
        if any(pattern.search(line) for pattern in _NOT_STARTED):
            return causes.PROGRAM_MISSING, line
    if any(_WRONG_ARCHITECTURE.search(line) for line in ending.lines[-_LAST_WORDS:]) and not errors:
        return causes.WRONG_ARCHITECTURE, _last_complaint(ending.lines)
    if ending.exit_code in (126, 127):
        return causes.PROGRAM_MISSING, _last_complaint(ending.lines)
    if ending.exit_code == EXIT_PEER_LOST:
        return causes.PEER_LOST, errors[0] if errors else _last_complaint(ending.lines)
    if errors:
        cause, error = _by_exceptions(ending, errors)
        return cause, _own_words(ending.lines) or error
    refusal = [line for line in ending.lines if _REFUSED.search(line)]
    if refusal and (refusal[-1].startswith("FATAL") or (ending.exit_code == _USAGE_ERROR and _has_usage(ending.lines))):
        return causes.BAD_ARGUMENTS, refusal[-1]
    if ending.exit_code == _USAGE_ERROR and _own_words(ending.lines):
        return causes.BAD_ARGUMENTS, _own_words(ending.lines)
    if ending.exit_code == _USAGE_ERROR and _has_usage(ending.lines):
        return causes.BAD_ARGUMENTS, _refusal_in_a_box(ending.lines) or next(filter(_USAGE.match, ending.lines))
    last = [line for line in ending.lines if line.strip()][-_LAST_WORDS:]
    return _by_words(last) or (causes.PROGRAM_EXIT, _last_complaint(ending.lines))


def _is_keras_fit(error: str, frames: Sequence[str]) -> bool:
    return bool(frames and _KERAS_FIT.search(error)) or any(frame.endswith(_KERAS_ON_BATCH) for frame in frames)


def _by_exceptions(ending: Ending, errors: Sequence[str]) -> Tuple[Cause, str]:
    frames = [line for line in ending.lines if _KERAS_FRAME in line]
    for error in errors:
        found = _by_words([error])
        if found and found[0] is causes.MACHINE_LIMIT and _is_lock(error, ending.lines):
            return causes.FILE_LOCKED, error
        if found and found[0] is causes.MODULE_MISSING and _is_own_module(error, ending.command):
            return causes.PROGRAM_MISSING, error
        if found:
            return found
        if _is_keras_fit(error, frames):
            return causes.KERAS_FIT, error
    return causes.PROGRAM_ERROR, errors[0]


def _is_lock(error: str, lines: Sequence[str]) -> bool:
    """Say whether the traceback that ends in `error` ends in a call that locks a file."""
    return bool(re.search(r"\b(flock|lockf)\(", _last_call(error, lines)))


def _last_call(error: str, lines: Sequence[str]) -> str:
    """Return the line of code at which the traceback that ends in `error` ends; "" where it shows none."""
    above = lines[: list(lines).index(error)] if error in lines else ()
    calls = [line for line in above if line.startswith("    ") and line.strip(" ^~")]
    return calls[-1].strip() if calls else ""


def _own_words(lines: Sequence[str]) -> str:
    """Return what the program said last, below its traceback; "" where that is nothing of its own."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    found = _OWN_WORDS.match(last)
    return found.group(1) if found else ""


def _is_own_module(error: str, command: Sequence[str]) -> bool:
    """Say whether the missing module belongs to the package that `python -m PACKAGE.MODULE` runs."""
    name = re.search(r"No module named '?([\w]+)", error)
    if name is None or "-m" not in command[:-1]:
        return False
    return command[list(command).index("-m") + 1].split(".")[0] == name.group(1)


def _by_words(lines: Sequence[str]) -> Optional[Tuple[Cause, str]]:
    for line in reversed([line for line in lines if not INFORMATION.match(line)]):
        for pattern, cause in CAUSES_BY_WORDS:
            if pattern.search(line):
                return cause, line
    return None


def _has_usage(lines: Sequence[str]) -> bool:
    return any(_USAGE.match(line) for line in lines)


def _refusal_in_a_box(lines: Sequence[str]) -> str:
    """Return what typer says in a box titled Error; "" where there is none, such as when a command is missing."""
    titles = [index for index, line in enumerate(lines) if _BOX.match(line)]
    inside = lines[titles[-1] + 1 : titles[-1] + 2] if titles else []
    return inside[0].strip("│ ") if inside else ""


def _last_complaint(lines: Sequence[str]) -> str:
    """Return the last line that sounds like an error, else the last line."""
    for line in reversed(lines):
        if _COMPLAINT.search(line) and not INFORMATION.match(line):
            return line
    return next((line for line in reversed(lines) if line.strip()), "")


def describe_memory_kills(number: int, limit_mib: Optional[int]) -> str:
    """Return the remark about helper processes that the kernel killed, which their parent may not mention."""
    processes = "a process" if number == 1 else f"{number} processes"
    return f"the kernel killed {processes} of the container for memory; {_describe_limit(limit_mib)}"


def _describe_limit(limit_mib: Optional[int]) -> str:
    if limit_mib is None:
        return "the container has no limit of its own, so its node ran short"
    return f"the container's limit is {limit_mib} MiB"


_PREAMBLE = re.compile(r"\{\{function_node [^}]*\}\} ?|(Collective ops is aborted by: )(?=\1)")
"""Where TensorFlow was when it failed, and words that it repeats: the reason behind them must not be cut off."""


def _cut(line: str, remark: str = "") -> str:
    """Return `line`, without credentials, and `remark` within ERROR_LIMIT, the remark whole."""
    # What is hidden makes a line shorter: a few times the limit is enough to fill it.
    line = hide_credentials(_PREAMBLE.sub("", line.strip())[: 4 * ERROR_LIMIT])
    room = ERROR_LIMIT - len(remark)
    return ((line if len(line) <= room else line[: room - 1] + "…") + remark).strip()
