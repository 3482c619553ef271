"""What a verdict says: who failed first, of what, with which words; or what the leading task left behind.

Pure, like rules.py, which decides when a verdict is due.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, Mapping, Optional, Sequence

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cause import RESTART_IN_PLACE, Cause
from trainchart_runtime.cluster import EVALUATOR, Cluster, Task
from trainchart_runtime.image_builds import describe_build
from trainchart_runtime.pod_changes import describe_changes
from trainchart_runtime.run.observation import ContainerEnd, PodView, SetView
from trainchart_runtime.run.problems import count_deaths, is_given_up, is_taken_away, name_death, word_death
from trainchart_runtime.run.state import FAILED, STOPPED, SUCCEEDED, Deaths, PodProblem, RunProgress, RunState, Verdict
from trainchart_runtime.start_words import name_sentence
from trainchart_runtime.termination import LINE_LIMIT, LINES_KEPT, Termination, find_first_failure, follows_a_peer

_TELLING = {
    causes.PEER_UNRESOLVABLE.name,
    pod_causes.EVICTED.name,
    pod_causes.EVICTED_BY_CLIENT.name,
    pod_causes.EVICTED_BY_TAINT.name,
    *(cause.name for cause in causes.CAUSES.values() if cause.restart == RESTART_IN_PLACE),
}
"""Causes of the end of a program, or its pod, that say more than that it came no further."""


_OF_OTHERS = {
    cause.name for cause in (causes.PEER_LOST, causes.PEER_MISSING, causes.PEER_UNRESOLVABLE, pod_causes.POD_DELETED)
}
"""Causes of deaths that say nothing about the pod itself."""
_SPARED_SHOWN = 3


def find_failures(
    pods: Sequence[PodView], run_id: str, max_restarts: int, deaths: Optional[Mapping[str, Deaths]] = None
) -> Dict[str, Termination]:
    """Return pod name → failure that no restart will cure, for every such pod.

    A launcher leaves words when it gives up. A container that died without any (out of memory, killed), or was told
    to stop, is restarted by Kubernetes, or with its pod, more often than `max_restarts` to no avail. `deaths`
    remembers the pods before these; without it, these count alone.
    """
    failures = {}
    for pod in pods:
        words = [end.termination for end in pod.ends if end.termination and end.termination.run_id == run_id]
        died = (deaths or {}).get(str(pod.task))
        total = died.total if died else 0 if deaths is not None else count_deaths(pod)
        if words and words[0].cause != causes.TERMINATED.name:
            if not words[0].succeeded:
                failures[pod.name] = words[0]
        elif count_deaths(pod) and not is_taken_away(pod) and is_given_up(max_restarts, pod, total):
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


def add_changes(state: RunState, pods: Sequence[PodView], sets: Mapping[str, SetView]) -> RunState:
    """Return `state` with how the pod that ended the run differs from what its StatefulSet says."""
    verdict = state.verdict
    pod = next((each for each in pods if verdict is not None and each.name == verdict.pod), None)
    if verdict is None or pod is None or verdict.result != FAILED or verdict.changes:
        return state
    planned = sets.get(pod.name.rpartition("-")[0])
    # After an upgrade, a pod of before differs rightly.
    if planned is None or not pod.revision or pod.revision != planned.revision:
        return state
    return state._replace(verdict=verdict._replace(changes=describe_changes(pod.settings, planned.settings)))


def add_build(state: RunState, pods: Sequence[PodView]) -> RunState:
    """Return `state` with how the build of the pod that ended the run differs from those of its peers."""
    verdict = state.verdict
    pod = next((each for each in pods if verdict is not None and each.name == verdict.pod), None)
    if verdict is None or pod is None or pod.build is None or verdict.result != FAILED or verdict.build:
        return state
    return state._replace(verdict=verdict._replace(build=describe_build(pod.build, pod.node, state.builds)))


def add_spared(state: RunState, pods: Sequence[PodView]) -> RunState:
    """Return `state` with the pods of the same StatefulSet on other nodes that have not failed."""
    verdict = state.verdict
    if verdict is None or verdict.result != FAILED or verdict.spared or not verdict.node:
        return state
    deaths = [incident for incident in state.incidents if incident.cause not in _OF_OTHERS]
    is_repeated = any(each.node == verdict.node and each.at < verdict.at for each in deaths)
    failed_nodes = {verdict.node, *(each.node for each in deaths)}
    owner = verdict.pod.rpartition("-")[0]
    spared = [
        f"{pod.task} on {pod.node}"
        for pod in pods
        if pod.is_running and pod.name.rpartition("-")[0] == owner and pod.node not in failed_nodes
    ]
    if not is_repeated or len(failed_nodes) > 1 or not spared:
        return state
    return state._replace(verdict=verdict._replace(spared=_join(spared)))


def _join(places: Sequence[str]) -> str:
    more = len(places) - _SPARED_SHOWN
    return ", ".join(places[:_SPARED_SHOWN]) + (f" and {more} more" if more > 0 else "")


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


def add_evaluation(verdict: Verdict, evaluators: Sequence[PodView]) -> Verdict:
    """Return `verdict` with what the evaluators have measured last, as `evaluator/NAME`."""
    said = [end.termination for pod in evaluators for end in pod.ends if end.succeeded and end.termination]
    found = {f"{EVALUATOR}/{name}": number for words in said for name, number in words.metrics.items()}
    return verdict._replace(metrics={**verdict.metrics, **found})


def explain_late_start(
    group: Cluster, pods: Sequence[PodView], missing: Sequence[Task], problems: Sequence[PodProblem], now: float
) -> Verdict:
    """Return the verdict of a run whose pods did not all run in time, naming who was missing and why.

    Its cause is what kept the first pod with a known problem; START_DEADLINE where nothing is known.
    """
    known = {problem.subject: problem for problem in problems}
    found = {pod.task: pod for pod in pods}
    names = {task: group.pod_name(task) for task in missing}
    reasons = {
        task: known[name].message if name in known else _explain_missing(found.get(task))
        for task, name in names.items()
    }
    first = min(missing, key=lambda task: known[names[task]].since if names[task] in known else now + 1)
    problem = known.get(names[first])
    cause = causes.CAUSES[problem.cause] if problem else causes.START_DEADLINE
    place = problem or found.get(first)
    late = causes.START_DEADLINE.sentence
    sentence = f"{name_sentence(problem.cause, problem.message)} {late}" if problem else late
    return Verdict(
        result=FAILED,
        at=now,
        cause=cause.name,
        sentence=sentence,
        hint=cause.hint,
        pod=names[first],
        node=place.node if place else "",
        error=reasons[first],
        lines=tuple(f"{names[task]}: {reasons[task]}"[:LINE_LIMIT] for task in missing[:LINES_KEPT]),
    )


def explain_fruitless(leader: Optional[PodView], name: str, state: RunState, now: float) -> Verdict:
    """Return the verdict of a run whose leading task starts again and again and comes no further.

    Its cause is what ended the program last. Where that was another task's end, it is that task's, if the same ended
    it at most of the starts; NO_PROGRESS otherwise.
    """
    progress = state.progress
    assert progress is not None
    reached = "without a step" if progress.best_step is None else f"since step {progress.best_step} was reached"
    error = f"{progress.fruitless_restarts} restarts {reached}"
    node = leader.node if leader else ""
    telling = [incident for incident in state.incidents if incident.cause in _TELLING]
    ends = [incident for incident in telling if incident.pod == name]
    if not ends:
        often = Counter((incident.pod, incident.cause) for incident in telling).most_common(1)
        if often and 2 * often[0][1] > progress.fruitless_restarts:
            ends = [incident for incident in telling if (incident.pod, incident.cause) == often[0][0]]
            name, node = ends[-1].pod, ends[-1].node
    cause = causes.CAUSES[ends[-1].cause] if ends else causes.NO_PROGRESS
    if ends:
        error = f"{ends[-1].error} ({error})"
    return _verdict(cause, now, progress)._replace(pod=name, node=node, error=error)


def explain_deadline(
    leader: Optional[PodView], name: str, seconds: float, progress: Optional[RunProgress], now: float
) -> Verdict:
    """Return the verdict of a run that took longer than it may."""
    verdict = _verdict(causes.ACTIVE_DEADLINE, now, progress)
    node = leader.node if leader else ""
    return verdict._replace(pod=name, node=node, error=f"not finished after {seconds:.0f} s")


def explain_stop(progress: Optional[RunProgress], now: float) -> Verdict:
    """Return the verdict of a run that was ended on request."""
    return _verdict(causes.STOPPED, now, progress)._replace(result=STOPPED)


def _verdict(cause: Cause, now: float, progress: Optional[RunProgress]) -> Verdict:
    return Verdict(
        result=FAILED,
        at=now,
        cause=cause.name,
        sentence=cause.sentence,
        hint=cause.hint,
        step=progress.step if progress else None,
        metrics=progress.metrics if progress else {},
    )


def _explain_missing(pod: Optional[PodView]) -> str:
    if pod is None:
        return "the pod was not created: see the events of its StatefulSet"
    if pod.is_deleting:
        return "the pod is being deleted"
    return pod.start or ("the container was not started" if pod.node else "the pod was not scheduled")


def _word(pod: PodView, end: ContainerEnd, run_id: str) -> Termination:
    """Return what the launcher would have said."""
    return Termination(
        cause=name_death(end).name,
        exit_code=end.exit_code,
        task_type=pod.task.task_type,
        task_index=pod.task.task_index,
        run_id=run_id,
        error=word_death(end),
        finished_at=end.finished_at,
    )
