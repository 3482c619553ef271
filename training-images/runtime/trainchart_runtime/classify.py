"""Pick the cause of a program's end from its exit code, its signal and its last lines.

Pure text work. The exception that ended the program counts, not what it or TensorFlow logged before: a
healthy parameter-server chief logs UNAVAILABLE too while a worker restarts.
"""

from __future__ import annotations

import re
from signal import Signals
from typing import NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime import causes, data_causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.cause_words import CAUSES_BY_WORDS
from trainchart_runtime.contract import EXIT_PEER_LOST
from trainchart_runtime.log_text import INFORMATION, hide_credentials
from trainchart_runtime.module_shadows import is_shadowed
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.tracebacks import find_errors, find_root

ERROR_LIMIT = 500
"""Characters of an error line that are worth keeping."""
_ROOT_LIMIT = 200
"""Of them, those of the exception that a program raised its last one from."""
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
    data_causes.EXAMPLES_DIFFER,
    data_causes.FILE_MISSING,
    data_causes.DATA_MISMATCH,
    causes.CRASHED,
    causes.OUT_OF_MEMORY,
    causes.ACCESS_REFUSED,
    causes.MESSAGE_TOO_LARGE,
    data_causes.CHECKPOINT_DAMAGED,
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


_OWN_WORDS = re.compile(r"^(?:\d\d:\d\d:\d\d )?(error: \S.*)")
"""The last line of a program that catches its exception, prints it, and says what it means."""
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
_COMPLAINT = re.compile(
    r"\w(Error|Exception|Interrupt)\b|::\w+_error\b|^F\d{4} |: F "
    r"|(?i:\b(errors?|fatal|critical|panic|exception|fail(ed|ure|s)?|aborted|cannot|can't|could not|unable to"
    r"|no such|not found|denied|refused|invalid|corrupt(ed)?|killed|(segmentation|bus) fault|bad_alloc)\b)"
)
_HARMLESS = re.compile(r"^(W\d{4} |.*: W )|\bWARN(ING)?\b|^warning\b|Warning: |\b(INFO|DEBUG)\b|Unable to register cu")
"""Lines of a lower level, and those about CUDA libraries that TensorFlow prints at each start."""
_MEASURE = re.compile(
    r"(?<=[\s(,])\w{0,60}error\w{0,60}(\s{0,9}[:=]\s{0,9}[-+]?\d[\d.]{0,30}|\s{1,9}[-+]?\d{1,30}\.\d{1,30})"
    r"(e[-+]?\d{1,9})?(?=[\s,;)\]}]|$)"
    r"|\b(0|no) (error|fail|exception)\w*",
    re.IGNORECASE,
)
"""A metric, such as a mean squared error, and a count of errors that is 0."""

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
        if is_shadowed(error, ending.lines):
            return causes.MODULE_SHADOWED, error
        found = _by_words([error])
        if found and found[0] is causes.MACHINE_LIMIT and _is_lock(error, ending.lines):
            return causes.FILE_LOCKED, error
        if found and found[0] is causes.MODULE_MISSING and _is_own_module(error, ending.command):
            return causes.PROGRAM_MISSING, error
        if found:
            return found
        if _is_keras_fit(error, frames):
            return causes.KERAS_FIT, error
    return causes.PROGRAM_ERROR, _name_root(errors[0], find_root(ending.lines))


def _name_root(error: str, root: str) -> str:
    """Return an exception's line with that of the exception it was raised from, unless it repeats its words."""
    words = root.partition(": ")[2] or root
    return _cut(error, f" (from {_cut(root, limit=_ROOT_LIMIT)})") if root and words not in error else error


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
    """Return the last line that sounds like an error, else that there is none, with the last line."""
    for line in reversed(lines):
        is_harmless = _HARMLESS.search(line) or INFORMATION.match(line)
        if not is_harmless and _COMPLAINT.search(_MEASURE.sub("", line)):
            return line
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"no error was printed; the last line: {last.strip()}" if last else ""


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
_NO_NAME = re.compile(r" ?\[Op:\w+\] name:$")
"""How TensorFlow ends the error of an operation without a name."""


def _cut(line: str, remark: str = "", limit: int = ERROR_LIMIT) -> str:
    """Return `line`, without credentials, and `remark` within `limit`, the remark whole."""
    # What is hidden makes a line shorter: a few times the limit is enough to fill it.
    line = hide_credentials(_PREAMBLE.sub("", _NO_NAME.sub("", line.strip()))[: 4 * ERROR_LIMIT])
    room = limit - len(remark)
    return ((line if len(line) <= room else line[: room - 1] + "…") + remark).strip()
