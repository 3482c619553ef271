"""Does the same work many times, on all cores where that is worth it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

FEW = 4
"""Pieces of work that are done sooner than other processes start."""
Task = TypeVar("Task")
Result = TypeVar("Result")


def map_parallel(work: Callable[[Task], Result], tasks: Sequence[Task], *, are_many: bool) -> Iterator[Result]:
    """Yield what `work`, a function of a module, makes of each task, in order; in other processes if `are_many`."""
    if not are_many:
        yield from map(work, tasks)
        return
    workers = min(len(tasks), len(os.sched_getaffinity(0)))
    # Not by fork: Helm's library has threads of its own.
    with _safe_path(), ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(work, tasks)


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
