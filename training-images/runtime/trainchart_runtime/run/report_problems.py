"""What running programs and their launchers report: NaN, slow tasks, killed processes, silent storage, too little CPU.

Pure; problems.py takes it in. Nothing has failed yet, so the run goes on, and users are told.
"""

from __future__ import annotations

import statistics
from typing import Dict, List, Mapping, Sequence, Tuple

from trainchart_runtime import running_causes
from trainchart_runtime.cluster import Task
from trainchart_runtime.pod_problems import MESSAGE_LIMIT, Problem
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.run.observation import NAN_NAMES_SHOWN, LauncherReport, PodView
from trainchart_runtime.run.state import RUNNING, RunState

_SLOW = 3.0
"""So many times slower than the others: less is the difference of two machines."""
_SETTLED_SECONDS = 30.0
"""A program that notices that one of its processes was killed starts another, or ends."""
_LATE_SECONDS = 10.0
"""A step that was made before may be seen so much later."""
_FEWEST = 3
"""Of two tasks, neither is the odd one out."""


def find_report_problems(
    own: Sequence[PodView], reports: Mapping[str, LauncherReport], state: RunState, now: float
) -> List[Tuple[Task, Problem]]:
    """Return what is wrong with the numbers that running programs report."""
    running = [pod for pod in own if pod.is_running and not pod.is_deleting and pod.uid in reports]
    known = {pod.task: reports[pod.uid] for pod in running if not reports[pod.uid].is_parked}
    found = [(task, _word_nan(report)) for task, report in known.items() if report.nan_metrics]
    found += [(task, _word_kill(report)) for task, report in known.items() if _waits_for_killed(report, state, now)]
    found += [(task, _word_silence(report)) for task, report in known.items() if report.silent_storage]
    found += [(task, _word_throttling(report)) for task, report in known.items() if report.throttling]
    # A program that starts reads its data first, and is slow.
    if state.phase == RUNNING and now >= state.since + STEADY_SECONDS:
        found += _find_slow(known)
    return found


def _word_nan(report: LauncherReport) -> Problem:
    names = ", ".join(report.nan_metrics[:NAN_NAMES_SHOWN])
    more = ", …" if len(report.nan_metrics) > NAN_NAMES_SHOWN else ""
    return Problem(running_causes.NOT_A_NUMBER.name, f"NaN: {names}{more}"[:MESSAGE_LIMIT])


def _waits_for_killed(report: LauncherReport, state: RunState, now: float) -> bool:
    """Say whether the kernel killed a process of the program, and the run has made no step since."""
    if not report.memory_kill or not 0 < report.memory_killed_at <= now - _SETTLED_SECONDS:
        return False
    progress = state.progress
    if progress is None or progress.best_step is None:
        return True
    return progress.at <= report.memory_killed_at + _LATE_SECONDS


def _word_kill(report: LauncherReport) -> Problem:
    return Problem(running_causes.CHILD_KILLED.name, f"{report.memory_kill}; no step since")


def _word_silence(report: LauncherReport) -> Problem:
    return Problem(running_causes.STORAGE_SILENT.name, report.silent_storage)


def _word_throttling(report: LauncherReport) -> Problem:
    return Problem(running_causes.CPU_THROTTLED.name, report.throttling)


def _find_slow(known: Mapping[Task, LauncherReport]) -> List[Tuple[Task, Problem]]:
    """Return the tasks that are far slower than most others of their role."""
    roles: Dict[str, Dict[Task, float]] = {}
    for task, report in known.items():
        if report.examples_per_second is not None:
            roles.setdefault(task.task_type, {})[task] = report.examples_per_second
    found = []
    for speeds in roles.values():
        usual = statistics.median(speeds.values())
        slow = [task for task, speed in speeds.items() if speed * _SLOW < usual]
        if len(speeds) >= _FEWEST:
            words = f"less than a third of the usual {usual:.3g} examples per second of its role"
            found += [(task, Problem(running_causes.SLOW_TASK.name, words)) for task in slow]
    return found
