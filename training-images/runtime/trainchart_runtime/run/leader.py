"""What the leading task goes through, as the record keeps it: its step, its starts, and steps that were lost. Pure."""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from trainchart_runtime.cluster import Task
from trainchart_runtime.pod_causes import EVICTED
from trainchart_runtime.progress import add_counts
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.run.observation import LauncherReport, PodView
from trainchart_runtime.run.state import KILLED, SETBACKS_KEPT, RunProgress, RunState, Setback, StepMark

_EARLIER_RESTARTS = 3
_SIGKILL = 9
MARK_SECONDS = 60.0
"""Time between two marks of one program, at least."""
_MARKS_KEPT = 12
_NEW_MARKS = 6
"""Of these, none is dropped for later ones; of those before, every other one."""


def note_progress(
    leader: Optional[PodView], reports: Mapping[str, LauncherReport], state: RunState, now: float
) -> RunState:
    """Return `state` with what the leading task's launcher says: its step, and how often its program was started."""
    last = state.progress
    report = reports.get(leader.uid) if leader else None
    if report is None and leader and last and last.uid and last.uid != leader.uid:
        # Another pod has taken its place, and starts the program once, whether it has answered yet or not.
        report = LauncherReport(1, step=last.step, examples_per_second=last.examples_per_second, metrics=last.metrics)
    if report is None:
        return state
    best, fruitless = (last.best_step, last.fruitless_restarts) if last else (None, _count_earlier(report))
    uid = leader.uid if leader else ""
    is_other_pod = bool(last and last.uid and uid and uid != last.uid)
    if last and (is_other_pod or report.attempt != last.attempt):
        # A program that tells no steps is judged by how long it ran.
        is_steady = best is None and now - last.at >= STEADY_SECONDS
        starts = report.attempt if is_other_pod else max(1, report.attempt - last.attempt)
        fruitless = add_counts(0 if is_steady else fruitless, starts)
    if report.step is not None and (best is None or report.step > best):
        best, fruitless = report.step, 0
    before, end = (last.before, last.end) if last else (None, "")
    if last and (is_other_pod or report.attempt != last.attempt):
        before, end = (last.step if before is None else before), (last.end if is_other_pod else "")
    progress = RunProgress(
        now, report.attempt, report.step, report.examples_per_second, report.metrics, best, fruitless, uid, before, end
    )
    if last and report.step is not None and not is_other_pod and (report.attempt, report.step) == last[1:3]:
        # Other numbers may change in a program that makes no step.
        progress = progress._replace(at=last.at)
    if last and progress == last._replace(at=progress.at):
        return state
    if state.first_step is None and report.step is not None:
        state = state._replace(first_step=report.step, first_step_at=now)
    if report.step is not None:
        mark = StepMark(now, report.step, name_program(uid, report.attempt))
        state = state._replace(marks=_add_mark(state.marks, mark))
    return _note_setback(state._replace(progress=progress), leader, now)


def name_program(uid: str, attempt: int) -> str:
    """Return an id for one start of the program: the pod's uid and the attempt."""
    return f"{uid[:8]}-{attempt}"


def _add_mark(marks: Sequence[StepMark], new: StepMark) -> Sequence[StepMark]:
    last = marks[-1] if marks else None
    if last and last.program == new.program and (new.step <= last.step or new.at - last.at < MARK_SECONDS):
        return marks
    marks = (*marks, new)
    if len(marks) > _MARKS_KEPT:
        marks = (*marks[:-_NEW_MARKS:2], *marks[-_NEW_MARKS:])
    return marks


def _note_setback(state: RunState, leader: Optional[PodView], now: float) -> RunState:
    """Return `state` with the steps that were lost, as soon as the program has told a step after a new start.

    Until then its progress file may hold the last step of the start before.
    """
    progress = state.progress
    if progress is None or progress.before is None or progress.step in (None, progress.before):
        return state
    assert progress.step is not None
    setbacks = state.setbacks
    if progress.step < progress.before:
        pod = leader.name if leader else ""
        new = Setback(now, state.attempt, pod, progress.before, progress.step, progress.end)
        setbacks = (*setbacks, new)[-SETBACKS_KEPT:]
    return state._replace(progress=progress._replace(before=None, end=""), setbacks=setbacks)


def note_leader_end(leader: Task, pods: Sequence[PodView], state: RunState) -> RunState:
    """Return `state` with the last step of the leading task's pod that is going, and whether it had to be killed."""
    progress = state.progress
    ended = [pod for pod in pods if pod.task == leader and pod.is_deleting and pod.ends and not pod.is_running]
    pod = next((each for each in ended if progress is not None and each.uid == progress.uid), None)
    if progress is None or pod is None:
        return state
    end = pod.ends[0]
    words = end.termination if end.termination and end.termination.run_id == state.run_id else None
    is_killed = words.signal == _SIGKILL if words else end.exit_code == 128 + _SIGKILL and end.reason != "OOMKilled"
    is_killed = is_killed and not _is_cut_short(pod)
    step = progress.step if words is None or words.step is None else max(words.step, progress.step or 0)
    return state._replace(progress=progress._replace(step=step, end=KILLED if is_killed else ""))


def _is_cut_short(pod: PodView) -> bool:
    """Say whether a kubelet has evicted the pod, which gives it less time than its grace period."""
    return pod.problem is not None and pod.problem.cause == EVICTED.name


def _count_earlier(report: LauncherReport) -> int:
    """Return how many restarts before the first look count as fruitless: not all, they may lie days apart."""
    return min(report.attempt - 1, _EARLIER_RESTARTS)
