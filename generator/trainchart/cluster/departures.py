"""Says what keeps deleted objects: a program that runs on, a finalizer, a silent node, a user of a claim. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.cluster.node_states import describe_failure
from trainchart.cluster.snapshot import (
    Object,
    Snapshot,
    has_ended,
    is_training_pod,
    items_of,
    listed,
    name_of,
    owner_of,
    section,
)
from trainchart.reports.report import Report
from trainchart.reports.text import describe_seconds, describe_time
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.pod_causes import ADMISSION_REFUSED, CHANGE_REFUSED, CLAIM_DELETED, NODE_LOST
from trainchart_runtime.pod_problems import find_claims, parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.observation import LOST_SECONDS

_PROTECTION = "kubernetes.io/pvc-protection"
_OF_OWNERS = ("foregroundDeletion", "orphan")
"""Kubernetes takes these away itself, when what an object owns is gone."""
_SLOW_SECONDS = 60.0
"""A program that saves on SIGTERM has mostly ended by then."""
_KILL = (
    f"kubectl exec NAME -n NAMESPACE -c {TRAINING_CONTAINER} -- sh -c 'kill -9 -1' ends it now, without saving "
    "(kubectl delete with a shorter grace period may not)"
)
"""Of Kubernetes 1.36 and containerd 1.6, a stop that has begun takes as long as it was given first."""
_NAMESPACE_ENDS = "because it is being terminated"
"""How the API server refuses what is to be created in a namespace that is being deleted."""
_REFUSALS = (ADMISSION_REFUSED.name, CHANGE_REFUSED.name)
"""Causes of problems whose messages the API server writes; programs, images and launchers write others."""
_REFUSED_EVENT = "FailedCreate"


def find_departures(report: Report, seen: Snapshot) -> list[str]:
    """Return a remark for what was deleted and does not go, worst first."""
    return [
        *_find_ending_namespace(report, seen),
        *_find_stuck_pods(report, seen),
        *_find_slow_ends(report, seen),
        *_find_stuck_claims(report, seen),
        *_find_stuck_owners(report, seen),
    ]


def is_overdue(each: Object, now: float) -> bool:
    """Say whether an object should have gone long ago; the time of its deletion has its grace period in it."""
    at = parse_time(section(each, "metadata").get("deletionTimestamp"))
    return at > 0 and now >= at + LOST_SECONDS


def may_end_with_namespace(report: Report, seen: Snapshot) -> bool:
    """Say whether the namespace may be being deleted: pods go, or nothing is created for the release any more."""
    going = any("deletionTimestamp" in section(pod, "metadata") for pod in listed(seen.pods))
    return going or _is_refused(report, seen)


def _is_refused(report: Report, seen: Snapshot) -> bool:
    problems = (each.message for each in report.problems if each.cause in _REFUSALS)
    events = (str(each.get("message")) for each in listed(seen.events) if each.get("reason") == _REFUSED_EVENT)
    return any(_NAMESPACE_ENDS in words for words in (*problems, *events))


def _find_ending_namespace(report: Report, seen: Snapshot) -> Iterator[str]:
    found = [each for each in listed(seen.namespaces) if name_of(each) == report.key.namespace]
    is_ending = any("deletionTimestamp" in section(each, "metadata") for each in found)
    if not is_ending and (found or not _is_refused(report, seen)):
        return
    name = report.key.namespace
    conditions = [each for namespace in found for each in items_of(section(namespace, "status"), "conditions")]
    kept = [str(each.get("message") or "") for each in conditions if each.get("status") == "True"]
    words = f" What keeps it: {' '.join(filter(None, kept))}" if any(kept) else ""
    yield (
        f"the namespace {name} is being deleted, which cannot be undone: nothing can be created in it, and everything "
        f"in it is deleted.{words} kubectl describe namespace {name} shows what is left. Install the release elsewhere"
    )


def _find_stuck_pods(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield what keeps pods, once for all that the same keeps."""
    problems = {each.subject: each.cause for each in report.problems}
    found: dict[str, list[str]] = {}
    for pod in listed(seen.pods):
        known = problems.get(name_of(pod))
        # What took a pod away stays its problem; only a node that is lost keeps it too.
        is_explained = known == NODE_LOST.name or (
            known and not _list_finalizers(pod) and not _has_lost_node(pod, seen)
        )
        if is_overdue(pod, report.now) and not is_explained:
            found.setdefault(_describe_keeper(pod, seen), []).append(name_of(pod))
    for words, names in found.items():
        verb = "is" if len(names) == 1 else "are"
        yield f"{list_names(names)} {verb} stuck terminating: {_fill(words, names[0], report)}"


def _has_lost_node(pod: Object, seen: Snapshot) -> bool:
    """Say whether a pod's node is known to be not ready or gone while its containers may run."""
    node = str(section(pod, "spec").get("nodeName") or "")
    return bool(node) and not _are_containers_ended(pod) and bool(describe_failure(node, seen.nodes))


def _find_slow_ends(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which programs still run long after their pods were deleted, since when, and when they are killed."""
    lost = {each.subject for each in report.problems if each.cause == NODE_LOST.name}
    slow = [pod for pod in listed(seen.pods) if name_of(pod) not in lost and _ends_slowly(pod, report.now)]
    if not slow:
        return
    names, begin = [name_of(pod) for pod in slow], min(map(_find_deletion, slow))
    age, since = describe_seconds(report.now - begin), f"terminating since {describe_time(begin)}"
    killed = describe_time(max(map(_find_deadline, slow)))
    label = next((pod.label for pod in report.pods or () if pod.name == names[0]), names[0])
    logs = f"trainchart logs {report.address} --pod {label}"
    if len(slow) == 1:
        grace = describe_seconds(_find_deadline(slow[0]) - begin)
        head = f"the program of {names[0]} still runs {age} after its pod was deleted"
        end = f"{since}, killed by the kubelet at {killed}, when its grace period of {grace} (stopGraceSeconds) is over"
        kill = _KILL
    else:
        head = f"the programs of {list_names(names)} still run {age} after their pods were deleted"
        end = f"{since}, each killed when its grace period (stopGraceSeconds) is over, the last at {killed}"
        kill = _KILL.replace("ends it", "ends the first")
    yield (
        f"{head}: {end}. Its steps since the last checkpoint are then lost. If it still saves ({logs}), wait. If it "
        "ignores SIGTERM, let it save and exit on SIGTERM, as programs that use the training library do; "
        f"{_fill(kill, names[0], report)}"
    )


def _ends_slowly(pod: Object, now: float) -> bool:
    """Say whether the program of a training pod runs on long after the pod was deleted; not of one that is stuck."""
    deleted = _find_deletion(pod)
    return _runs_program(pod) and 0 < deleted <= now - _SLOW_SECONDS and not is_overdue(pod, now)


def _runs_program(pod: Object) -> bool:
    """Say whether the kubelet has last said that a training pod's program runs."""
    statuses = items_of(section(pod, "status"), "containerStatuses")
    runs = any(each.get("name") == TRAINING_CONTAINER and section(each, "state", "running") for each in statuses)
    return is_training_pod(pod) and runs


def _find_deadline(pod: Object) -> float:
    """Return when the grace period of a deleted pod is over; 0 for one that is not deleted."""
    return parse_time(section(pod, "metadata").get("deletionTimestamp"))


def _find_deletion(pod: Object) -> float:
    """Return when a pod was deleted: Kubernetes adds the grace period to the time; 0 for one that is not deleted."""
    grace = section(pod, "metadata").get("deletionGracePeriodSeconds")
    return _find_deadline(pod) - (grace if isinstance(grace, int) else 0) if _find_deadline(pod) else 0.0


def _describe_keeper(pod: Object, seen: Snapshot) -> str:
    """Return what keeps a pod, and what to do; NAME and NAMESPACE stand for its own."""
    finalizers, node = _list_finalizers(pod), str(section(pod, "spec").get("nodeName") or "")
    ended = not node or _are_containers_ended(pod)
    failure = "" if ended else describe_failure(node, seen.nodes)
    if finalizers and ended:
        return f"all containers have ended, and {_describe_finalizers(finalizers, 'pod')}"
    kept = f"; after that, {_describe_finalizers(finalizers, 'pod')}" if finalizers else ""
    if failure:
        return f"its node {failure}. Nothing else can confirm that the pod's containers have ended{kept}"
    absent = "" if finalizers else "it has no finalizer; "
    place = f"its node {node}" if node else "its node"
    runs = f". If its program still runs there, {_KILL}" if _runs_program(pod) else ""
    return f"{absent}check its volumes and {place}: kubectl describe pod NAME -n NAMESPACE{kept}{runs}"


def _describe_finalizers(finalizers: Sequence[str], kind: str) -> str:
    """Return what keeps an object and the two ways out; NAME and NAMESPACE stand for its own."""
    many = len(finalizers) > 1
    remove = """'[{"op":"remove","path":"/metadata/finalizers"}]'"""
    return (
        f"the finalizer{'s' if many else ''} {list_names(finalizers)} keep{'' if many else 's'} it: the program that "
        f"set {'them' if many else 'it'} must run to finish its work; only if that program is gone for good: "
        f"kubectl patch {kind} NAME -n NAMESPACE --type=json -p {remove}"
    )


def _list_finalizers(each: Object) -> list[str]:
    found = section(each, "metadata").get("finalizers")
    return [str(name) for name in found] if isinstance(found, list) else []


def _are_containers_ended(pod: Object) -> bool:
    status = section(pod, "status")
    states = [section(each, "state") for each in items_of(status, "containerStatuses")]
    return has_ended(pod) or (bool(states) and all("terminated" in state for state in states))


def _find_stuck_claims(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which claims of the release are being deleted, and what keeps each."""
    users: dict[str, list[str]] = {}
    for pod in listed(seen.pods):
        for claim in find_claims(pod):
            is_using = section(pod, "spec").get("nodeName") and not has_ended(pod)
            users.setdefault(claim, []).extend([name_of(pod)] if is_using else [])
    told = any(problem.cause == CLAIM_DELETED.name for problem in report.problems)
    for each in listed(seen.claims):
        name, others = name_of(each), [name for name in _list_finalizers(each) if name != _PROTECTION]
        if name not in users or not section(each, "metadata").get("deletionTimestamp"):
            continue
        if owner_of(each).startswith("Pod "):
            continue  # It goes with its pod.
        if users[name] and not told:
            yield (
                f"the claim {name} is being deleted, which cannot be undone: {list_names(users[name])} still "
                f"{'uses' if len(users[name]) == 1 else 'use'} it ({_PROTECTION}), and its data is lost with the last "
                f"such pod. {CLAIM_DELETED.hint}"
            )
        elif not users[name] and others and is_overdue(each, report.now):
            yield f"the claim {name} is stuck terminating: {_fill(_describe_finalizers(others, 'pvc'), name, report)}"
        elif not users[name] and is_overdue(each, report.now):
            yield (
                f"the claim {name} is stuck terminating: {_PROTECTION} keeps it while a pod uses it: kubectl describe "
                f"pvc {name} -n {report.key.namespace} names such pods"
            )


def _find_stuck_owners(report: Report, seen: Snapshot) -> Iterator[str]:
    for kind, objects in (("StatefulSet", seen.sets), ("Job", seen.jobs)):
        for each in listed(objects):
            finalizers = [name for name in _list_finalizers(each) if name not in _OF_OWNERS]
            if finalizers and is_overdue(each, report.now):
                words = _fill(_describe_finalizers(finalizers, kind.lower()), name_of(each), report)
                yield f"the {kind} {name_of(each)} is stuck terminating: {words}"


def _fill(words: str, name: str, report: Report) -> str:
    return words.replace("NAMESPACE", report.key.namespace).replace("NAME", name)
