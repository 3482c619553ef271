"""Does the same work many times, on all cores where that is worth it."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import InvalidStateError, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import TypeVar

FEW = 4
"""Pieces of work that are done sooner than other processes start."""
Task = TypeVar("Task")
Result = TypeVar("Result")
_STOPPED = 128 + signal.SIGTERM


class _Stopped(BaseException):
    """SIGTERM has reached this worker process."""


def map_parallel(work: Callable[[Task], Result], tasks: Sequence[Task], *, are_many: bool) -> Iterator[Result]:
    """Yield what `work`, a function of a module, makes of each task, in order; in other processes if `are_many`."""
    if not are_many:
        yield from map(work, tasks)
        return
    workers = min(len(tasks), len(os.sched_getaffinity(0)))
    others = multiprocessing.active_children()
    with _safe_path():
        context = multiprocessing.get_context("fork" if _has_one_thread() else "spawn")
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
        with _without_interrupts():
            results = pool.map(functools.partial(_work_until_stopped, work), tasks)
    hook = threading.excepthook
    try:
        with pool:
            try:
                yield from results
            except BaseException:
                threading.excepthook = functools.partial(_print_unless_cancelled, hook)
                for process in multiprocessing.active_children():
                    if process not in others:
                        process.terminate()
                raise
    finally:
        threading.excepthook = hook


def _print_unless_cancelled(
    hook: Callable[[threading.ExceptHookArgs], object], found: threading.ExceptHookArgs
) -> None:
    """Print the exception of a thread, unless it is that of a pool whose tasks were cancelled (Python 3.11)."""
    if not isinstance(found.exc_value, InvalidStateError):
        hook(found)


def _has_one_thread() -> bool:
    """Return whether a copy of this process lacks nothing: threads, as Helm's library has, are not copied."""
    try:
        return len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


def _end_with_parent() -> None:
    """Let this worker process be stopped by SIGTERM, and by the end of its parent, however that ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_stop_after, args=(parent,), daemon=True).start()


def _stop_after(process: BaseProcess) -> None:
    process.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _work_until_stopped(work: Callable[[Task], Result], task: Task) -> Result:
    """Do a task in a worker process; SIGTERM ends the process once `work` has cleaned up."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        return work(task)
    except _Stopped:
        os._exit(_STOPPED)
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _Stopped


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block SIGINT in processes that start meanwhile: this process terminates them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Keep the current folder, whose files may be anyone's, off the import path of processes that start meanwhile."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
