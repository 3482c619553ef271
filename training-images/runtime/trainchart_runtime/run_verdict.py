"""What a verdict says: who failed first, of what, with which words; or what the leading task left behind.

Pure, like run_rules.py, which decides when a verdict is due.
"""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Sequence

from trainchart_runtime import causes
from trainchart_runtime.cluster import Cluster, Task
from trainchart_runtime.run_observation import ContainerEnd, PodView
from trainchart_runtime.run_state import FAILED, SUCCEEDED, Verdict
from trainchart_runtime.termination import LINE_LIMIT, LINES_KEPT, Termination, find_first_failure, follows_a_peer

_NOT_STARTABLE = ("StartError", "ContainerCannotRun")


def find_failures(pods: Sequence[PodView], run_id: str, max_restarts: int) -> Dict[str, Termination]:
    """Return pod name → failure that no restart will cure, for every such pod.

    A launcher leaves words only when it gives up. A container that died without any (out of memory, killed) is
    restarted by Kubernetes, more often than `max_restarts` to no avail.
    """
    failures = {}
    for pod in pods:
        words = [end.termination for end in pod.ends if end.termination and end.termination.run_id == run_id]
        if words:
            if not words[0].succeeded and words[0].cause != causes.TERMINATED.name:
                failures[pod.name] = words[0]
        elif pod.ends and not pod.ends[0].succeeded and pod.deaths > max_restarts:
            failures[pod.name] = _word(pod, pod.ends[0], run_id)
    return failures


def explain_failure(
    pods: Sequence[PodView], failures: Mapping[str, Termination], now: float, only_origins: bool = False
) -> Optional[Verdict]:
    """Return the verdict about the first of `failures`; None where there is none.

    With `only_origins`, failures that only follow another task's end do not count.
    """
    if only_origins:
        failures = {name: failure for name, failure in failures.items() if not follows_a_peer(failure)}
    name = find_first_failure(failures)
    if name is None:
        return None
    failure = failures[name]
    # A newer launcher may know more causes.
    cause = causes.CAUSES.get(failure.cause)
    return Verdict(
        result=FAILED,
        at=now,
        cause=failure.cause,
        sentence=cause.sentence if cause else "",
        hint=cause.hint if cause else "",
        pod=name,
        node=next(pod.node for pod in pods if pod.name == name),
        exit_code=failure.exit_code,
        error=failure.error,
        step=failure.step,
        metrics=failure.metrics,
        lines=tuple(failure.lines[-LINES_KEPT:]),
    )


def explain_success(leaders: Sequence[PodView], now: float) -> Verdict:
    """Return the verdict of a run whose leading task has succeeded, with what its program reported last."""
    verdict = Verdict(
        result=SUCCEEDED, at=now, cause=causes.SUCCEEDED.name, sentence=causes.SUCCEEDED.sentence, exit_code=0
    )
    for pod in leaders:
        verdict = verdict._replace(pod=pod.name, node=pod.node)
        for end in pod.ends:
            if end.termination and end.succeeded:
                words = end.termination
                return verdict._replace(step=words.step, metrics=words.metrics, lines=tuple(words.lines[-LINES_KEPT:]))
    return verdict


def explain_late_start(cluster: Cluster, pods: Sequence[PodView], missing: Sequence[Task], now: float) -> Verdict:
    """Return the verdict of a run that did not start in time, naming who was missing and why."""
    found = {pod.task: pod for pod in pods}
    reasons = {task: _explain_missing(found.get(task)) for task in missing}
    # A pod with a message of its own says more than one that was never created.
    first = min(missing, key=lambda task: not (found.get(task) and found[task].problem))
    return Verdict(
        result=FAILED,
        at=now,
        cause=causes.START_DEADLINE.name,
        sentence=causes.START_DEADLINE.sentence,
        hint=causes.START_DEADLINE.hint,
        pod=cluster.pod_name(first),
        node=found[first].node if first in found else "",
        error=reasons[first],
        lines=tuple(f"{cluster.pod_name(task)}: {reasons[task]}"[:LINE_LIMIT] for task in missing[:LINES_KEPT]),
    )


def _explain_missing(pod: Optional[PodView]) -> str:
    if pod is None:
        return "the pod was not created: see the events of its StatefulSet"
    if pod.is_deleting:
        return "the pod is being deleted"
    return pod.problem or ("the container was not started" if pod.node else "the pod was not scheduled")


def _word(pod: PodView, end: ContainerEnd, run_id: str) -> Termination:
    """Return what the launcher would have said."""
    if end.reason == "OOMKilled":
        cause = causes.OUT_OF_MEMORY
    elif end.reason in _NOT_STARTABLE:
        cause = causes.PROGRAM_MISSING
    elif end.exit_code > 128:
        cause = causes.KILLED
    else:
        cause = causes.CONTAINER_DIED
    return Termination(
        cause=cause.name,
        exit_code=end.exit_code,
        task_type=pod.task.task_type,
        task_index=pod.task.task_index,
        run_id=run_id,
        error=end.detail or end.reason,
        finished_at=end.finished_at,
    )
