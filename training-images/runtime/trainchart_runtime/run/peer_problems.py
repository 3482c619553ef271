"""What keeps running pods from their peers, as their launchers tell: names, networks, connections that break.

Pure; problems.py takes it in. What does not run or dies by itself is explained there, and is why others lose it.
"""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime import causes
from trainchart_runtime.cause import RESTART_IN_PLACE_PEER
from trainchart_runtime.cluster import Cluster, Task
from trainchart_runtime.contract import PEER_REFUSES, PEER_UNRESOLVED
from trainchart_runtime.pod_problems import MESSAGE_LIMIT, Problem
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.run.observation import LauncherReport, MissingPeer, PodView, find_task
from trainchart_runtime.run.state import PROBLEMS_KEPT, RunProgress
from trainchart_runtime.running_causes import NOT_CONNECTED
from trainchart_runtime.termination import Failure

_BREAKS = 3
_BREAKS_SECONDS = 60.0
"""A peer that is replaced breaks connections once or twice, and soon answers again."""
_RECENT_SECONDS = 50.0
"""A step that came since then is of the program that has waited for its peers for PEER_SECONDS."""
CLOCK_LEAD_SECONDS = 60.0
"""By which the clock of a node may be ahead: a later time of a failure is none, whatever its pod says."""
_NAMED = 5
_NOT_RUNNING = float("inf")
_TASK = re.compile(r"/job:([a-z]+)(?:/replica:\d+)?/task:(\d+)")
"""How TensorFlow names a task in its errors."""


class PeerProblem(NamedTuple):
    """One task that cannot reach others, or loses them again and again."""

    task: Task
    problem: Problem
    since: float = 0.0
    """Unix time; 0 where it is not known."""


def find_peer_problems(
    group: Cluster,
    own: Sequence[PodView],
    reports: Mapping[str, LauncherReport],
    now: float,
    progress: Optional[RunProgress],
) -> List[PeerProblem]:
    """Return what running pods cannot reach although it runs, and whether the leading task trains without its peers."""
    running = {pod.task: pod for pod in own if pod.is_running and not pod.is_deleting}
    known = [(pod, reports[pod.uid]) for pod in running.values() if pod.uid in reports]
    found = [_find_missing(group, running, pod, report) for pod, report in known if report.missing_peers]
    if progress is not None and progress.step is not None and now - progress.at < _RECENT_SECONDS:
        found += _find_lone(known, progress)
    breaking = [(pod, report, breaks) for pod, report in known for breaks in [_find_breaks(report, now)] if breaks]
    if breaking:
        ends = _find_last_ends(group, running, reports, now)
        found += [_word_breaks(running, ends, pod, report, breaks) for pod, report, breaks in breaking[:PROBLEMS_KEPT]]
    return [problem for problem in found if problem is not None]


def is_echo(failure: Failure) -> bool:
    """Say whether a program ended because of another task."""
    cause = causes.CAUSES.get(failure.cause)
    return cause is not None and cause.restart == RESTART_IN_PLACE_PEER


def _find_missing(
    group: Cluster, running: Mapping[Task, PodView], pod: PodView, report: LauncherReport
) -> Optional[PeerProblem]:
    """Return that peers of `pod` run and cannot be reached: their names, or else their addresses."""
    peers = [each for each in report.missing_peers if find_task(group, each.address.partition(".")[0]) in running]
    nameless = [each for each in peers if each.reason == PEER_UNRESOLVED]
    silent = [each for each in peers if each.reason not in (PEER_UNRESOLVED, PEER_REFUSES)]
    if nameless:
        words = f"names that do not resolve in this pod, though their pods run: {_list_peers(nameless)}"
        return PeerProblem(pod.task, Problem(causes.PEER_UNRESOLVABLE.name, words[:MESSAGE_LIMIT]))
    if silent:
        words = f"pods that run and cannot be reached from this one: {_list_peers(silent)} ({silent[0].reason})"
        return PeerProblem(pod.task, Problem(causes.PEER_MISSING.name, words[:MESSAGE_LIMIT]))
    return None


def _find_lone(known: Sequence[Tuple[PodView, LauncherReport]], progress: RunProgress) -> List[PeerProblem]:
    """Return the leading task where it makes steps without peers that its strategy needs.

    A launcher asks each peer until it has answered once, so none of these has since the program started.
    """
    for pod, report in known:
        closed = [each for each in report.missing_peers if each.reason == PEER_REFUSES]
        if pod.uid == progress.uid and closed:
            words = f"it makes steps, though these peers have never listened for it: {_list_peers(closed)}"
            return [PeerProblem(pod.task, Problem(NOT_CONNECTED.name, words[:MESSAGE_LIMIT]))]
    return []


def _list_peers(peers: Sequence[MissingPeer]) -> str:
    more = f" and {len(peers) - _NAMED} more" if len(peers) > _NAMED else ""
    return ", ".join(each.address for each in peers[:_NAMED]) + more


def _find_breaks(report: LauncherReport, now: float) -> Sequence[Failure]:
    """Return the failures by which a program has lost peers again and again, until now; none where that is over."""
    breaks: List[Failure] = []
    for failure in reversed(_list_failures(report, now)):
        if not is_echo(failure):
            break
        breaks.insert(0, failure)
    is_long = len(breaks) >= _BREAKS and breaks[-1].at - breaks[0].at >= _BREAKS_SECONDS
    return breaks if is_long and now < breaks[-1].at + STEADY_SECONDS else ()


def _word_breaks(
    running: Mapping[Task, PodView],
    ends: Mapping[Task, float],
    pod: PodView,
    report: LauncherReport,
    breaks: Sequence[Failure],
) -> Optional[PeerProblem]:
    """Return that the program of `pod` loses peers; None where one of them has ended: then that must be explained."""
    named = _find_named(breaks, pod.task)
    if any(ends.get(task, _NOT_RUNNING) >= breaks[0].at for task in (named or ends) if task != pod.task):
        return None
    peers = ", ".join(f"{task} on {running[task].node}" for task in named)
    of_peers = f" names {peers}" if peers else ""
    is_nameless = all(each.cause == causes.PEER_UNRESOLVABLE.name for each in breaks)
    what = "could not resolve the name of" if is_nameless else "lost"
    words = (
        f"{what} a peer {report.peer_failures} times; each time the program was started again in its pod, which "
        f"run.maxRestarts does not count. The last error{of_peers}: {breaks[-1].error}"
    )
    cause = causes.PEER_UNRESOLVABLE if is_nameless else causes.PEER_LOST
    return PeerProblem(pod.task, Problem(cause.name, words[:MESSAGE_LIMIT]), breaks[0].at)


def _find_named(breaks: Sequence[Failure], own: Task) -> Tuple[Task, ...]:
    """Return the other tasks that the last error names."""
    found = {Task(task_type, int(index)) for task_type, index in _TASK.findall(breaks[-1].error)}
    return tuple(sorted(found - {own}))


def _find_last_ends(
    group: Cluster, running: Mapping[Task, PodView], reports: Mapping[str, LauncherReport], now: float
) -> Dict[Task, float]:
    """Return when each task has ended by its own fault last: 0 for never, without end for one that does not run."""
    found = {}
    for task in (task for task_type in group.roles for task in group.tasks(task_type)):
        pod = running.get(task)
        if pod is None:
            found[task] = _NOT_RUNNING
            continue
        report = reports.get(pod.uid)
        own = [each.at for each in _list_failures(report, now) if not is_echo(each)] if report else []
        found[task] = max([0.0, *own, *(end.finished_at for end in pod.ends)])
    return found


def _list_failures(report: LauncherReport, now: float) -> List[Failure]:
    return [each for each in report.failures if each.at <= now + CLOCK_LEAD_SECONDS]
