"""Says which nodes a waiting pod may run on, by its labels and its volumes, and whether these take it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.cluster.node_selection import is_selected, meets_terms
from trainchart.cluster.node_states import describe_closure
from trainchart.cluster.snapshot import Object, Snapshot, Unreadable, items_of, listed, name_of, owner_of, section
from trainchart.reports.report import Report
from trainchart_runtime.pod_causes import NO_NODE_MATCHES, PLACEMENT_RULES, UNSCHEDULABLE, VOLUME_ERROR
from trainchart_runtime.pod_problems import find_claims
from trainchart_runtime.run.judge import list_names

_WAITS = (NO_NODE_MATCHES.name, PLACEMENT_RULES.name, UNSCHEDULABLE.name, VOLUME_ERROR.name)
_ELSEWHERE = ("didn't match PersistentVolume's node affinity", "volume node affinity conflict")
"""How the scheduler says that a node cannot reach a volume."""
_CLOSED = ("were unschedulable", "had untolerated taint")
_SEE_NODES = (
    "kubectl get nodes shows which is cordoned (kubectl uncordon NODE) or not ready, and kubectl describe node shows "
    "its taints"
)
_ADVICE = "free what the pod needs there, or move the data; room on other nodes does not help"


def find_homeless(report: Report, seen: Snapshot) -> list[Object]:
    """Return the pods for which no node is found."""
    waiting = {each.subject for each in report.problems if each.cause in _WAITS}
    pods = (pod for pod in listed(seen.pods) if not section(pod, "spec").get("nodeName"))
    return [pod for pod in pods if not waiting.isdisjoint((name_of(pod), owner_of(pod)))]


def list_volumes(report: Report, seen: Snapshot) -> list[str]:
    """Return the names of the PersistentVolumes of the pods for which no node is found."""
    names = [name for pod in find_homeless(report, seen) for name in _name_volumes(pod, seen).values()]
    return list(dict.fromkeys(names))


def find_placements(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods wait for nodes that are closed or gone, or from which alone their volumes can be reached."""
    messages = {each.subject: each.message for each in report.problems if each.cause in _WAITS}
    confined: dict[str, list[str]] = {}
    """What closes the only nodes of some pods, and the names of these pods."""
    for pod in find_homeless(report, seen):
        message = messages[name_of(pod) if name_of(pod) in messages else owner_of(pod)]
        is_tied = any(words in message for words in _ELSEWHERE) and bool(find_claims(pod))
        volumes = _find_volumes(pod, seen)
        if volumes is None or isinstance(seen.nodes, Unreadable) or not seen.nodes:
            if is_tied:
                yield _describe_tie(pod, message)
            continue
        fitting = [node for node in seen.nodes if _fits(pod, node, volumes)]
        closed = {name_of(node): state for node in fitting if (state := describe_closure(node, pod))}
        if fitting and len(closed) == len(fitting):
            ties = list_names(_list_ties(pod, volumes))
            only = f"can run only on {list_names(list(closed))} ({ties})" if ties else "cannot run on any node now"
            confined.setdefault(f"{only}: {list_names(list(closed.values()))}", []).append(name_of(pod))
        elif is_tied and volumes and not fitting:
            yield _describe_absence(pod, volumes)
        elif is_tied:
            yield _describe_tie(pod, message, [name_of(node) for node in fitting], closed)
    yield from (f"{list_names(names)} {words}" for words, names in confined.items())


def _describe_tie(pod: Object, message: str, nodes: Sequence[str] = (), closed: dict[str, str] | None = None) -> str:
    """Return which nodes reach the volumes of a pod; without `nodes`, by what the scheduler says alone."""
    claims = list_names([f"claim {claim}" for claim in find_claims(pod)])
    which = f"{list_names(nodes)} only" if nodes else "some nodes only"
    begin = f"a volume of {name_of(pod)} ({claims}) can be reached from {which}, and these"
    places = "" if nodes else ". kubectl describe pv names the nodes, or their zone"
    if closed:
        return f"{begin} have no room or are closed: {list_names(list(closed.values()))}; otherwise {_ADVICE}"
    if not nodes and any(words in message for words in _CLOSED):
        return f"{begin} are closed or have no room: {_SEE_NODES}; where it is open: {_ADVICE}{places}"
    return f"{begin} have no room: {_ADVICE}{places}"


def _describe_absence(pod: Object, volumes: dict[str, Object]) -> str:
    ties = list_names([f"claim {claim}: {words}" for claim, each in volumes.items() if (words := _word_tie(each))])
    return (
        f"no node reaches the volumes of {name_of(pod)} ({ties}): if such a node was removed, its data is lost unless "
        "it comes back; otherwise give the pod claims that one node can reach"
    )


def _name_volumes(pod: Object, seen: Snapshot) -> dict[str, str]:
    """Return the PersistentVolume of each claim of a pod that has one."""
    bound = {name_of(each): str(section(each, "spec").get("volumeName") or "") for each in listed(seen.claims)}
    return {claim: bound[claim] for claim in find_claims(pod) if bound.get(claim)}


def _find_volumes(pod: Object, seen: Snapshot) -> dict[str, Object] | None:
    """Return the PersistentVolumes of a pod by their claims; None where they are not all known."""
    known = {name_of(each): each for each in listed(seen.volumes)}
    names = _name_volumes(pod, seen)
    if isinstance(seen.claims, Unreadable) or not set(names.values()) <= set(known):
        return None
    return {claim: known[name] for claim, name in names.items()}


def _fits(pod: Object, node: Object, volumes: dict[str, Object]) -> bool:
    """Say whether a node has the labels that a pod and its volumes ask for."""
    return is_selected(section(pod, "spec"), node) and all(
        meets_terms(section(each, "spec", "nodeAffinity", "required"), node) for each in volumes.values()
    )


def _list_ties(pod: Object, volumes: dict[str, Object]) -> list[str]:
    """Return what ties a pod to some of the nodes."""
    claims = [f"claim {claim}" for claim, volume in volumes.items() if _word_tie(volume)]
    labels = [f"nodeSelector {key}={value}" for key, value in section(pod, "spec", "nodeSelector").items()]
    return [*claims, *labels, *(["nodeAffinity"] if section(pod, "spec", "affinity", "nodeAffinity") else [])]


def _word_tie(volume: Object) -> str:
    """Return the labels of the nodes that reach a volume; "" where all do."""
    terms = items_of(section(volume, "spec", "nodeAffinity", "required"), "nodeSelectorTerms")
    words = [
        f"{each.get('key')} {each.get('operator')} {', '.join(map(str, each.get('values') or ()))}".strip()
        for term in terms
        for each in (*items_of(term, "matchExpressions"), *items_of(term, "matchFields"))
    ]
    return list_names(words)
