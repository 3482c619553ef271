"""Where a program waits, from the stacks of its Python threads.

Programs of training images write them at a signal (trainchart_stacks); others cannot be asked.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import time
from collections import Counter
from typing import Iterable, Iterator, List, NamedTuple, Sequence

from trainchart_runtime import contract
from trainchart_runtime.log_text import shorten

_FILE = "/memfd:trainchart-stacks"
"""Beginning of what the link to the file says among a process' open ones, as trainchart_stacks names it."""
_SIGNAL_OFFSET = 9
"""Behind SIGRTMIN, as in trainchart_stacks."""
_DUMP_LIMIT = 1 << 18
_ANSWER_SECONDS = 5.0
_STEADY_SECONDS = 0.2
"""A dump is written line by line; it is whole once nothing has been added for so long."""
_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d{1,9}) in (?P<function>.*)')
_SHUTDOWN = "_shutdown"
"""Where Python's main thread, once it has ended, waits for threads that are no daemons."""
_PACKAGES = "-packages/"
_PYTHON = re.compile(r"/lib(64)?/python[\d.]+/|^<frozen ")
_TRAINCHART = "/opt/trainchart/python/"
_OTHERS_SHOWN = 2
_EXIT_STATUS = 49
"""Among the fields that read_process returns; 0 as long as a process lives."""
_WORDS_LIMIT = 400
_NAME_LIMIT = 80


class Frame(NamedTuple):
    """A call that has not returned."""

    file: str
    line: int
    function: str

    @property
    def is_of_python(self) -> bool:
        return _PACKAGES not in self.file and _PYTHON.search(self.file) is not None

    @property
    def is_own(self) -> bool:
        """Whether it is of the program itself: neither Python's, nor trainchart's, nor of an installed package."""
        return not (_PYTHON.search(self.file) or _TRAINCHART in self.file or _PACKAGES in self.file)


def read_stacks(group: int) -> List[str]:
    """Return the lines of the stacks of the first process of a group that can be asked; none where none can."""
    for pid in find_group(group):
        file = _find_file(pid)
        if file:
            return _ask(pid, file)
    return []


def find_group(group: int) -> List[int]:
    """Return the processes of a process group, the oldest first as far as numbers tell."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            fields = read_process(int(name))
            if fields and fields[2] == str(group):
                found.append(int(name))
    return sorted(found)


def read_process(pid: int) -> Sequence[str]:
    """Return the fields of /proc/PID/stat from the state on: state, parent, group, ...; none where it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _find_file(pid: int) -> str:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            if os.readlink(f"{folder}/{name}").startswith(_FILE):
                return f"{folder}/{name}"
    except OSError:
        pass
    return ""


def _ask(pid: int, path: str) -> List[str]:
    try:
        with open(path, "r+b") as file:
            file.truncate(0)
            end = 0
            os.kill(pid, signal.SIGRTMIN + _SIGNAL_OFFSET)
            deadline, changed_at = time.monotonic() + _ANSWER_SECONDS, 0.0
            while time.monotonic() < deadline and not (changed_at and time.monotonic() - changed_at > _STEADY_SECONDS):
                time.sleep(_STEADY_SECONDS / 10)
                size = os.fstat(file.fileno()).st_size
                if size != end:
                    end, changed_at = size, time.monotonic()
            # What is written last says most.
            file.seek(max(0, end - _DUMP_LIMIT))
            lines = file.read(_DUMP_LIMIT).decode("utf-8", "replace").splitlines()
            file.truncate(0)
            return lines
    except OSError:
        return []


def describe_stacks(lines: Sequence[str]) -> str:
    """Return where the main thread waits, then others that run the program's own code; "" where nothing says it."""
    # The thread that got the signal is written last, and that is the main one wherever it can be.
    threads = [each for each in _parse(lines) if each]
    if not threads:
        return ""
    main = _describe_thread(threads[-1], is_main=True)
    describe = _describe_target if main.startswith(_SHUTDOWN) else functools.partial(_describe_thread, is_main=False)
    own = [words for each in reversed(threads[:-1]) if (words := describe(each))]
    others = "".join(f"; another thread is in {words}" for words in list(dict.fromkeys(own))[:_OTHERS_SHOWN])
    return shorten(main + others, _WORDS_LIMIT)


def _parse(lines: Sequence[str]) -> List[List[Frame]]:
    threads: List[List[Frame]] = []
    for line in lines:
        found = _FRAME.fullmatch(line)
        if found and threads:
            threads[-1].append(Frame(found["file"], int(found["line"]), found["function"]))
        elif "hread" in line:
            threads.append([])
    return threads


def _describe_thread(frames: Sequence[Frame], *, is_main: bool) -> str:
    own = next((frame for frame in frames if frame.is_own), None)
    if own is None and is_main and frames[-1].function == _SHUTDOWN:
        return f"{_SHUTDOWN}: its main thread has ended, and it waits for its other threads"
    if own is None:
        return "".join(_describe_frames(frames[:1])) if is_main else ""
    # The function of Python that the program called, such as Pool.map, says more than the lock in which that waits.
    called = [frame for frame in frames[: frames.index(own)][-1:] if frame.is_of_python]
    return ", called from ".join(_describe_frames(dict.fromkeys((frames[0], *called, own))))


def _describe_target(frames: Sequence[Frame]) -> str:
    """Return what a thread was started for: its first call outside of Python's threading module."""
    called = [frame for frame in frames if os.path.basename(frame.file) != "threading.py"]
    return "".join(_describe_frames(called[-1:]))


def describe_unread_pipe(group: int) -> str:
    """Return which process of a program waits in a write to a pipe that is full; "" where none does."""
    for pid in find_group(group):
        try:
            with open(f"/proc/{pid}/wchan", encoding="ascii", errors="replace") as file:
                if pid == group or "pipe_write" not in file.read():
                    continue
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        # Other arguments may be anything, passwords too.
        script = [word for word in words[1:] if word.endswith(".py")]
        name = shorten(" ".join(map(os.path.basename, [*words[:1], *script[:1]])), _NAME_LIMIT)
        return f"; its process {pid} ({name}) {contract.UNREAD_PIPE}"
    return ""


def describe_dead_processes(group: int) -> str:
    """Return how many processes of a program have died and why, such as data loaders; "" where none has.

    Only those are found for which the program has not waited, as while it waits for what they were to send.
    """
    ends = [_describe_end(read_process(pid)) for pid in find_group(group) if pid != group]
    counts = Counter(end for end in ends if end)
    words = ", ".join(f"{number} x {end}" if len(counts) > 1 else end for end, number in counts.items())
    return f"; {sum(counts.values())} {contract.PROCESSES_DIED} ({words})" if counts else ""


def _describe_end(fields: Sequence[str]) -> str:
    """Return by which signal, or with which exit code, a process has failed that was not waited for; "" for others."""
    if len(fields) <= _EXIT_STATUS or fields[0] != "Z":
        return ""
    status = int(fields[_EXIT_STATUS])
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return f"exit code {os.WEXITSTATUS(status)}" if status else ""


def _describe_frames(frames: Iterable[Frame]) -> Iterator[str]:
    for frame in frames:
        file = frame.file.rpartition(_PACKAGES)[2]
        short = file if frame.is_own or file != frame.file else os.path.basename(file)
        yield f"{frame.function} ({short}:{frame.line})"
