"""Says what is odd about a training that has not failed: lost pods, a long end, a success without a step. Pure.

Each remark begins with what `list` shows of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainchart.cluster.log_lines import name_pods
from trainchart.cluster.objects import RoleSet, as_cluster
from trainchart.cluster.record import Record
from trainchart.cluster.running_logs import describe_lone_tasks
from trainchart.cluster.snapshot import (
    Snapshot,
    has_ended,
    is_controllers,
    is_training_pod,
    listed,
    name_of,
    owner_uid,
    section,
)
from trainchart.reports.evictions import advise_on_eviction
from trainchart.reports.hints import fill_in
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import FROM_RECORD, Report
from trainchart.reports.text import describe_time
from trainchart_runtime.causes import CAUSES, PEER_LOST, PEER_MISSING, PROBE_FAILED
from trainchart_runtime.cluster import EVALUATOR, deciding_tasks
from trainchart_runtime.contract import LAUNCHER_PREFIX
from trainchart_runtime.pod_causes import (
    EVICTED,
    EVICTED_BY_CLIENT,
    EVICTED_BY_TAINT,
    NODE_LOST,
    POD_DELETED,
    PREEMPTED,
)
from trainchart_runtime.pod_problems import find_pod_problem, parse_event, parse_time
from trainchart_runtime.run.judge import FRUITLESS_RESTARTS, list_names
from trainchart_runtime.run.state import FINISHING, SUCCEEDED, Incident

_EVICTED = tuple(cause.name for cause in (EVICTED, EVICTED_BY_CLIENT, EVICTED_BY_TAINT))
_TAKEN_AWAY = (*_EVICTED, *(cause.name for cause in (PREEMPTED, NODE_LOST, POD_DELETED)))
_OF_PEERS = (PEER_LOST.name, PEER_MISSING.name)
_UNRESOLVED = re.compile(r"resol|getaddrinfo|gaierror|Name or service not known", re.IGNORECASE)
_RUNNING = "Running"
_PROBES = ("Liveness probe ", "Startup probe ")
"""How the kubelet's events begin about the probes that end a container."""
_FAILED_HOOK = "its postStart hook failed: "
"""In the error of a death that the run controller has seen in time."""
_PROBE_WORDS = 24
"""Enough to tell the probes apart: what follows may be another each time."""
_OFTEN = 2
"""So many times a pod is taken away, and it is no accident."""
_HINTS = {
    POD_DELETED.name: "Find out who or what keeps deleting it: a person, a script, an autoscaler. Kubernetes does not "
    "store that, unless the API server writes an audit log."
}
"""What to do where it happens again and again, if that is not what to do the first time."""
_OF_EVALUATORS = (
    "An evaluator ends once it has evaluated the checkpoint of the last step; if that was never saved, it waits "
    "forever. "
)
_RESTORED = re.compile(
    rf"^(?!{LAUNCHER_PREFIX})"
    r".*?\b(?:restor(?:ed|ing)|resum(?:ed|ing)|nothing left to do)\b(?:.*?\bstep (\d{1,18}))?",
    re.IGNORECASE,
)
"""What a program says that begins from a checkpoint, with the step where it tells that.

The launcher's own lines are about this run: Kubernetes starts the container of a finished task again.
"""


def find_oddities(
    report: Report, seen: Snapshot, record: Record, sets: Sequence[RoleSet], *, is_scaled: bool
) -> list[str]:
    """Return a remark for each. Where another program scales the sets, no other has deleted their pods."""
    return [
        *_find_strays(report, seen, sets),
        *_find_repeated_losses(report, is_scaled=is_scaled),
        *_find_awaited_end(report, sets),
        *_find_idle_success(report, seen, record),
        *_find_lone_success(report, record),
        *_find_failing_companions(report, seen),
        *_find_kubelet_stops(report, seen),
        *_find_unreached_peers(report),
    ]


def _find_strays(report: Report, seen: Snapshot, sets: Sequence[RoleSet]) -> Iterator[str]:
    """Yield which pods have the labels of the training's pods, so that its Services lead to them, and are not its."""
    owners, names = {each.uid for each in sets}, {each.name for each in sets}
    for pod in listed(seen.pods) if sets else ():
        name, spec = name_of(pod), section(pod, "spec")
        # A task's own pod that its set has lost is told of elsewhere.
        is_own = owner_uid(pod) in owners or name.rpartition("-")[0] in names
        if not is_training_pod(pod) or is_own or has_ended(pod):
            continue
        task = str(spec.get("hostname") or "")
        copied = (
            f"; the name {task}.{spec.get('subdomain')} stands for its address, too" if spec.get("subdomain") else ""
        )
        since = describe_time(parse_time(section(pod, "metadata").get("creationTimestamp")))
        yield (
            f"the pod {name} has the labels of the training's pods, but is not one of them: its Services lead to that "
            f"pod as well{copied}, so that connections may fail now and then. It has been there since {since}, and may "
            f"be a copy for debugging (kubectl debug --copy-to --keep-labels). If it is not needed: kubectl delete pod "
            f"{name} -n {report.key.namespace}"
        )


def _find_unreached_peers(report: Report) -> Iterator[str]:
    """Yield the running pods that the errors of others name, and from which nodes these others do not reach them."""
    # A name that does not resolve says nothing of the pod that it stands for, nor of the network to it.
    found = [each for each in report.problems if each.cause in _OF_PEERS and not _UNRESOLVED.search(each.message)]
    words = " ".join(each.message for each in found)
    failed = {each.pod for each in report.incidents if each.cause not in _OF_PEERS}
    blaming = {each.subject for each in found}
    nodes = sorted({pod.node for pod in report.pods or () if pod.node and pod.name in blaming})
    for pod in report.pods or ():
        if f"{pod.name}." not in words or pod.name in failed | blaming or pod.state != _RUNNING:
            continue
        far = [node for node in nodes if node != pod.node]
        where = f"between {list_names(far)} and {pod.node} (a firewall, a NetworkPolicy)" if far else "of its pod"
        yield (
            f"the errors name {pod.label} on {pod.node}, which is running and has not failed: check the network "
            f"{where}, and whether its program answers: trainchart logs {report.address} --pod {pod.label}"
        )


def _find_repeated_losses(report: Report, *, is_scaled: bool) -> Iterator[str]:
    """Yield which pods the cluster has taken away several times, and with which words."""
    if report.is_over:
        return
    found: dict[tuple[str, str], list[Incident]] = {}
    for each in report.incidents:
        if each.cause in _TAKEN_AWAY and not (is_scaled and each.cause == POD_DELETED.name):
            found.setdefault((each.pod, each.cause), []).append(each)
    labels, fruitless = name_pods(report), report.progress.fruitless_restarts
    more = FRUITLESS_RESTARTS + 1 - fruitless
    until = f", until {more} more starts have brought no new highest step" if fruitless and more > 1 else ""
    # The advice for a problem stands beside it.
    advised = {each.cause for each in report.problems}.difference(_HINTS)
    for (pod, cause), incidents in sorted(found.items(), key=lambda item: -len(item[1])):
        if len(incidents) < _OFTEN:
            continue
        first, last = incidents[0], incidents[-1]
        same = (
            "the reason each time was"
            if len({_without_numbers(each.error) for each in incidents}) == 1
            else "the last reason was"
        )
        name = labels.get(pod, pod)
        hint = advise_on_eviction(last.error) if cause == EVICTED.name else CAUSES[cause].hint
        advice = fill_in(_HINTS.get(cause, hint), report.address, pod, last.node)
        words = "" if cause in advised else f". {advice}"
        advised.add(cause)
        yield (
            f"{name} was {_describe_loss(cause)} {len(incidents)} times since {describe_time(first.at)}: {same}: "
            f"{(last.error or CAUSES[cause].sentence).rstrip('.')}. The pod is recreated, and the run "
            f"continues{until}{words}"
        )


def _describe_loss(cause: str) -> str:
    words = {NODE_LOST.name: "lost with its node", POD_DELETED.name: "deleted"}
    return EVICTED.name if cause in _EVICTED else words.get(cause, cause)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def _find_awaited_end(report: Report, sets: Sequence[RoleSet]) -> Iterator[str]:
    """Yield for which tasks a run waits whose leading task has succeeded, and until when."""
    if report.phase != FINISHING or not sets:
        return
    cluster = as_cluster(sets)
    leader = deciding_tasks(cluster)[:1]
    if not leader:
        return  # its StatefulSet was deleted
    tasks = [*deciding_tasks(cluster), *cluster.tasks(EVALUATOR)]
    late = [str(task) for task in tasks if task not in leader and str(task) not in report.finished]
    step = "" if report.progress.step is None else f" at step {report.progress.step}"
    until = report.since + max(each.evaluator_grace for each in sets)
    if not late:
        return
    names = list_names(late)
    advice = _OF_EVALUATORS if any(task.startswith(EVALUATOR) for task in late) else ""
    yield (
        f"waits for {names} until {describe_time(until)}: {leader[0]} has succeeded{step}, and the pods keep what they "
        f"hold until {names} has ended as well, or run.evaluatorGrace has expired. {advice}To end the run now: "
        f"trainchart stop {report.address}, or helm upgrade with a shorter run.evaluatorGrace"
    )


def _find_idle_success(report: Report, seen: Snapshot, record: Record) -> Iterator[str]:
    """Yield that a run has succeeded without a step of its own: its log says that it restored an earlier result."""
    outcome, state = report.outcome, record.state
    if outcome is None or state is None or outcome.result != SUCCEEDED or report.source != FROM_RECORD:
        return
    kept = [line for log in record.logs if log.pod == outcome.pod for line in log.lines]
    found = next((found for line in (*kept, *outcome.lines) if (found := _RESTORED.search(line))), None)
    if found is None or outcome.step != state.first_step:
        return
    # Of a short run, the first step that was seen may be its last: where the log tells the step, that counts.
    if outcome.step is not None and found[1] and int(found[1]) < outcome.step:
        return
    restored = found.string
    where = "it reported none" if outcome.step is None else f"the first that it reported was {outcome.step}, its last"
    claims = sorted(_list_claims(seen))
    place = f" in {list_names([f'the claim {claim}' for claim in claims])}" if claims else ""
    yield (
        f"succeeded without a step of its own: {where}, and its log says: {restored.strip()}. "
        f"What an earlier run left{place} was already finished. To train, give the run its own claim or "
        "volumes.checkpoints.subPath, or more steps or epochs, and rerun it; --resume never starts over"
    )


def _find_lone_success(report: Report, record: Record) -> Iterator[str]:
    """Yield that the tasks of a run that has succeeded were not connected, as far as the kept lines tell."""
    labels = name_pods(report)
    logs = [[LogLine("", labels.get(log.pod, log.pod), line) for line in log.lines] for log in record.logs]
    yield from describe_lone_tasks(report, logs)


def _find_kubelet_stops(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield why the kubelet has stopped containers of pods that it left in place, as far as it says so."""
    stopped = {each.pod for each in report.incidents if each.cause == PROBE_FAILED.name}
    if report.outcome is not None and report.outcome.cause == PROBE_FAILED.name:
        stopped.add(report.outcome.pod)
    told: dict[tuple[str, str], str] = {}
    hooks = {each.pod for each in report.incidents if _FAILED_HOOK in each.error}
    for event in (parse_event(event) for event in listed(seen.events)):
        if event.kind == "Pod" and event.name in stopped and event.reason == "FailedPostStartHook":
            if event.name in hooks:
                continue
            words = "the postStart hook of its container failed; nothing says why, so run the hook's command yourself"
        elif event.kind == "Pod" and event.name in stopped and event.message.startswith(_PROBES):
            words = event.message.strip()
        else:
            continue
        told[event.name, words[:_PROBE_WORDS]] = words
    for (pod, _), words in told.items():
        yield f"the kubelet stopped the container of {pod}: {words}"


def _find_failing_companions(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods beside the training cannot run, such as that of TensorBoard."""
    events = [parse_event(event) for event in listed(seen.events)]
    advised = {each.cause for each in report.problems}
    for pod in listed(seen.pods):
        if is_training_pod(pod) or is_controllers(pod) or has_ended(pod):
            continue
        problem = find_pod_problem(pod, events)
        if problem is not None and problem.cause in CAUSES:
            name, cause = name_of(pod), CAUSES[problem.cause]
            hint = fill_in(cause.hint, report.address, name, str(section(pod, "spec").get("nodeName") or ""))
            advice = "" if cause.name in advised else f". {hint}"
            advised.add(cause.name)
            yield f"{name} is not running; the training continues without it: {problem.message} [{cause.name}]{advice}"


def _list_claims(seen: Snapshot) -> set[str]:
    """Return the claims that the training's pods mount."""
    found = set()
    for each in listed(seen.sets):
        volumes = section(each, "spec", "template", "spec").get("volumes")
        for volume in volumes if isinstance(volumes, list) else ():
            name = section(volume, "persistentVolumeClaim").get("claimName") if isinstance(volume, dict) else None
            found |= {str(name)} if name else set()
    return found
