"""Finds the NetworkPolicies of others that keep the pods of a training from each other and from services. Pure.

Policies only ever add what is allowed: one of another owner limits a direction that no policy of the release covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from trainchart.check.objects import selects
from trainchart.cluster.record import NOT_WRITTEN
from trainchart.cluster.snapshot import (
    Object,
    Objects,
    Snapshot,
    is_controllers,
    is_training_pod,
    items_of,
    label,
    listed,
    name_of,
    section,
)
from trainchart.reports.report import FROM_RECORD, Report
from trainchart.reports.text import describe_time
from trainchart_runtime.causes import DOWNLOAD_FAILED, PEER_MISSING, PEER_UNRESOLVABLE, SERVICE_UNREACHABLE
from trainchart_runtime.contract import INSTANCE_LABEL, STATE_KEY, TF_PORT
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import FAILED

_PEERS = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""Direction → where a policy lists its rules, and where a rule lists its peers."""
_DNS_PORT = 53
_API_PORTS = (443, 6443)
_NAME_LABEL = "kubernetes.io/metadata.name"
_OF_NETWORKS = tuple(cause.name for cause in (DOWNLOAD_FAILED, SERVICE_UNREACHABLE, PEER_MISSING, PEER_UNRESOLVABLE))
_UNRESOLVED = re.compile(
    r"[Nn]ame resolution|Name or service not known|getaddrinfo|gaierror|errors resolving|DNS resolution failed"
    r"|resolve host|libcurl code 6\b"
)
_UNANSWERED = re.compile(
    r"[Tt]imed out|TimeoutError|[Cc]onnection refused|ConnectionRefusedError|No route to host|Network is unreachable"
    r"|failed to connect to all addresses|Max retries exceeded|libcurl code (7|28)\b"
)
_ANSWERED = re.compile(r"HTTP ?Error\b|HTTP response code \d")
"""No policy keeps a program from a server that answers."""


class _Limit(NamedTuple):
    """What a policy keeps pods from."""

    policy: str
    effect: str
    """In words that follow the policy's name."""
    need: str
    """What its owner must admit."""


def needs_policies(report: Report, seen: Snapshot) -> bool:
    """Say whether NetworkPolicies may explain what is wrong with a training."""
    is_empty = any(not section(each, "data").get(STATE_KEY) for each in listed(seen.records))
    lacks_others = report.seems_to_hang or report.lacks_peers or report.lacks_names
    return lacks_others or is_empty or _lacks_services(report)


def explain_by_policies(report: Report, seen: Snapshot, policies: Objects) -> Report:
    """Return the report with the policies of others that explain it, and what to do about them."""
    remarks = list(find_foreign_policies(report, seen, policies))
    closed = [name for name, _, _ in _list_without_dns(report, seen, policies)]
    cutting = list(dict.fromkeys(name_of(policy) for policy, _, _ in _list_cutting(report, seen, policies)))
    known = list(report.remarks)
    if cutting:
        why = f"could not write it, probably because {_name_keepers(cutting)} it from the API server, see the notes"
        known = [each.replace(NOT_WRITTEN, f"is empty: the run controller {why}") for each in known]
    parts = [f"{_name_keepers(closed)} the pods from the cluster's DNS"] if closed else []
    whose = "the run controller from the API server"
    parts += [f"{_name_keepers(cutting)} {whose}" if closed != cutting else whose] if cutting else []
    blockade = (
        f"{' and '.join(parts)}, see the notes. Have its owner admit that and what the program calls, or add a "
        "NetworkPolicy that does, since policies only add what is allowed (networkPolicy.restrictEgress, egress and "
        "apiServer in the values have the chart add its own). Until then, restarting or reinstalling does not help."
    )
    blockade = blockade[0].upper() + blockade[1:] if parts else ""
    return replace(report, remarks=(*remarks, *known), blockade=blockade)


def _name_keepers(names: Sequence[str]) -> str:
    """Return the policies and the verb."""
    return f"the NetworkPolicies {list_names(names)} keep" if len(names) > 1 else f"the NetworkPolicy {names[0]} keeps"


def _list_failures(report: Report) -> list[tuple[str, str]]:
    """Return cause and error of the failure, or of those deaths after which no step was made."""
    outcome = report.outcome
    if outcome is not None:
        return [(outcome.cause, outcome.error)] if outcome.result == FAILED else []
    return [(each.cause, each.error) for each in report.incidents if each.at > report.progress.at]


def _lacks_services(report: Report) -> bool:
    """Say whether a program has failed because something did not answer it, or a name did not resolve."""
    return any(
        not _ANSWERED.search(error)
        and (cause in _OF_NETWORKS or _UNRESOLVED.search(error) or _UNANSWERED.search(error))
        for cause, error in _list_failures(report)
    )


def _lacks_names(report: Report) -> bool:
    """Say whether names do not resolve: of tasks, or of what a program calls."""
    return report.lacks_names or any(
        cause == PEER_UNRESOLVABLE.name or _UNRESOLVED.search(error) for cause, error in _list_failures(report)
    )


def _list_pods(report: Report, seen: Snapshot) -> list[Object]:
    """Return the training pods; those of a run that is over may be gone, and their sets then stand for them."""
    pods = [pod for pod in listed(seen.pods) if is_training_pod(pod)]
    if pods or not report.is_over:
        return pods
    templates = ((name_of(each), section(each, "spec", "template", "metadata")) for each in listed(seen.sets))
    return [{"metadata": {**metadata, "name": name}} for name, metadata in templates]


def find_foreign_policies(report: Report, seen: Snapshot, policies: Objects) -> Iterator[str]:
    """Yield what policies of others keep the training from, once for those that do so together."""
    found: dict[str, list[_Limit]] = {}
    for limit in (
        *_find_parted_peers(report, seen, policies),
        *_find_cut_off_controllers(report, seen, policies),
        *_find_closed_dns(report, seen, policies),
        *_find_narrow_exits(report, seen, policies),
    ):
        found.setdefault(limit.policy, []).append(limit)
    made = {name_of(each): section(each, "metadata").get("creationTimestamp") for each in listed(policies)}
    together: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, limits in found.items():
        together.setdefault(tuple((limit.effect, limit.need) for limit in limits), []).append(name)
    for words, names in together.items():
        times = [describe_time(parse_time(made.get(name))) for name in names]
        effects = "; it also ".join(effect for effect, _ in words)
        needs = "; and ".join(dict.fromkeys(need for _, need in words))
        subject, owner = (
            (f"the NetworkPolicy {names[0]}, which is not this release's and was made {times[0]},", "Its owner")
            if len(names) == 1
            else (
                f"each of the NetworkPolicies {list_names(names)}, which are not this release's and were made "
                f"{list_names(list(dict.fromkeys(times)))},",
                "The owner of one of them",
            )
        )
        yield (
            f"{subject} {effects}. {owner} must admit {needs} (kubectl describe networkpolicy {' '.join(names[:5])} "
            f"-n {report.key.namespace})"
        )


def _find_parted_peers(report: Report, seen: Snapshot, policies: Objects) -> Iterator[_Limit]:
    """Yield which policies of others keep the training's pods from each other."""
    pods = _list_pods(report, seen)
    is_alone = sum(role.wanted for role in report.roles) == 1
    own = [each for each in listed(policies) if label(each, INSTANCE_LABEL) == report.key.release]
    limits: dict[str, dict[str, list[str]]] = {}
    without_dns: set[str] = set()
    for direction in () if is_alone else _PEERS:
        covering = [each for each in listed(policies) if direction in _list_directions(each)]
        for pod in pods:
            selecting = [each for each in covering if _selects(each, pod)]
            if not any(each in own or _admits(each, direction, pods) for each in selecting):
                for policy in selecting:
                    limits.setdefault(name_of(policy), {}).setdefault(direction, []).append(name_of(pod))
                if direction == "Egress" and not any(map(_admits_dns, selecting)):
                    without_dns.update(map(name_of, selecting))
    # Where names are known not to resolve, there is a limit of its own about it.
    is_told = _lacks_names(report) or _lacks_services(report)
    for name, selected in limits.items():
        names = list_names(list(dict.fromkeys(pod for pods_of in selected.values() for pod in pods_of)))
        is_closed = name in without_dns and not is_told
        yield _Limit(
            name,
            f"selects {names} ({' and '.join(selected)}) and does not admit their traffic to each other"
            + (" or to the cluster's DNS" if is_closed else ""),
            f"traffic between the pods of this release{', and from them to DNS' if is_closed else ''}",
        )


def _find_closed_dns(report: Report, seen: Snapshot, policies: Objects) -> Iterator[_Limit]:
    """Yield which policies of others keep pods from the cluster's DNS, where names do not resolve."""
    where = "where names do not resolve" if _lacks_names(report) else "where the program gets no answer"
    for name, policy, names in _list_without_dns(report, seen, policies):
        labels = _label_dns_namespaces(policy)
        only = (
            f" except in namespaces with the label {labels}: kubectl get namespaces -l {labels} must list "
            "the namespace of DNS"
            if labels
            else ""
        )
        yield _Limit(
            name,
            f"selects {list_names(names)} (Egress), {where}, and does not admit port 53 (DNS){only}",
            "the namespace of the DNS, as by kubernetes.io/metadata.name: kube-system",
        )


def _list_without_dns(report: Report, seen: Snapshot, policies: Objects) -> list[tuple[str, Object, list[str]]]:
    """Return the policies of others that do not admit the DNS where that explains a failure, and for which pods."""
    limits: dict[str, tuple[Object, list[str]]] = {}
    for pod in _list_pods(report, seen) if _lacks_names(report) or _lacks_services(report) else ():
        selecting = _list_egress(report, policies, pod)
        if not any(map(_admits_dns, selecting)):
            for policy in selecting:
                limits.setdefault(name_of(policy), (policy, []))[1].append(name_of(pod))
    return [(name, policy, names) for name, (policy, names) in limits.items()]


def _find_narrow_exits(report: Report, seen: Snapshot, policies: Objects) -> Iterator[_Limit]:
    """Yield which policies of others admit the DNS, but perhaps not what a program got no answer from."""
    if _lacks_names(report) or not _lacks_services(report):
        return
    limits: dict[str, list[str]] = {}
    for pod in _list_pods(report, seen):
        selecting = _list_egress(report, policies, pod)
        if any(map(_admits_dns, selecting)) and not any(map(_admits_all, selecting)):
            for policy in selecting:
                limits.setdefault(name_of(policy), []).append(name_of(pod))
    for name, names in limits.items():
        yield _Limit(
            name,
            f"selects {list_names(names)} (Egress) and admits only what its rules list",
            "what the program calls, if it is not in them",
        )


def _list_egress(report: Report, policies: Objects, pod: Object) -> list[Object]:
    """Return the policies of others that limit a pod's way out; none where the release has its own, or too late."""
    selecting = [each for each in listed(policies) if "Egress" in _list_directions(each) and _selects(each, pod)]
    if any(label(each, INSTANCE_LABEL) == report.key.release for each in selecting):
        return []
    ended = report.outcome.at if report.outcome else report.now
    return [each for each in selecting if parse_time(section(each, "metadata").get("creationTimestamp")) <= ended]


def _admits_all(policy: Object) -> bool:
    """Say whether a rule of a policy admits every address outside of the cluster, on any port."""
    return any(
        not rule.get("ports")
        and (
            not rule.get("to")
            or any(section(peer, "ipBlock").get("cidr") == "0.0.0.0/0" for peer in items_of(rule, "to"))
        )
        for rule in items_of(section(policy, "spec"), "egress")
    )


def _list_dns_peers(policy: Object) -> Iterator[Object]:
    """Yield the peers whose port 53 a policy admits; an empty one stands for all."""
    for rule in items_of(section(policy, "spec"), "egress"):
        if _has_port(rule, _DNS_PORT, "UDP"):
            yield from items_of(rule, "to") or ({},)


def _admits_dns(policy: Object) -> bool:
    """Say whether a policy admits the cluster's DNS; where that depends on the labels of namespaces, it does not."""
    return any(
        not peer
        or "ipBlock" in peer
        or ("namespaceSelector" in peer and _label_namespaces(peer) in ("", f"{_NAME_LABEL}=kube-system"))
        for peer in _list_dns_peers(policy)
    )


def _label_dns_namespaces(policy: Object) -> str:
    return next(filter(None, map(_label_namespaces, _list_dns_peers(policy))), "")


def _label_namespaces(peer: Object) -> str:
    """Return the labels that namespaces must have, as kubectl takes them; empty where all fit, or it is not known."""
    selector = section(peer, "namespaceSelector")
    labels = section(selector, "matchLabels")
    return "" if selector.get("matchExpressions") else ",".join(f"{key}={value}" for key, value in labels.items())


def _find_cut_off_controllers(report: Report, seen: Snapshot, policies: Objects) -> Iterator[_Limit]:
    """Yield which policies of others keep the run controller from what is outside of its namespace."""
    for policy, pod, has_dns in _list_cutting(report, seen, policies):
        what = "the API server" if has_dns else "the API server and the cluster's DNS"
        yield _Limit(
            name_of(policy),
            f"selects the run controller {pod} (Egress) and does not admit "
            f"{'connections' if has_dns else 'traffic'} out of the namespace, so perhaps not to the API server, "
            "without which the run controller neither records steps nor restarts or ends the run",
            f"{what} to the run controller",
        )


def _list_cutting(report: Report, seen: Snapshot, policies: Objects) -> Iterator[tuple[Object, str, bool]]:
    """Yield the policies of others that keep a run controller from other namespaces, its pod, and if DNS is open."""
    if report.is_over and report.source == FROM_RECORD:
        return
    pods = [each for each in listed(seen.pods) if is_controllers(each)]
    jobs = [each for each in listed(seen.jobs) if is_controllers(each)][-1:]
    gone = [
        {"metadata": {**section(each, "spec", "template", "metadata"), "name": f"of Job {name_of(each)}"}}
        for each in jobs
    ]
    for pod in pods or gone:
        selecting = [each for each in listed(policies) if "Egress" in _list_directions(each) and _selects(each, pod)]
        is_own = any(label(each, INSTANCE_LABEL) == report.key.release for each in selecting)
        if not is_own and not any(map(_admits_elsewhere, selecting)):
            has_dns = any(map(_admits_dns, selecting))
            yield from ((policy, name_of(pod), has_dns) for policy in selecting)


def _admits_elsewhere(policy: Object) -> bool:
    """Say whether a policy admits connections, on a port of API servers, to anything outside of its namespace."""
    every = items_of(section(policy, "spec"), "egress")
    rules = [rule for rule in every if any(_has_port(rule, port, "TCP") for port in _API_PORTS)]
    peers = [peer for rule in rules for peer in items_of(rule, "to")]
    return any(not rule.get("to") for rule in rules) or any(
        "podSelector" not in peer or "namespaceSelector" in peer for peer in peers
    )


def _list_directions(policy: Object) -> Sequence[str]:
    spec = section(policy, "spec")
    types = spec.get("policyTypes")
    if isinstance(types, list) and types:
        return [each for each in types if each in _PEERS]
    return ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _admits(policy: Object, direction: str, pods: Sequence[Object]) -> bool:
    """Say whether a policy admits the training's port between all pods; what only the network knows counts as yes."""
    rules = section(policy, "spec").get(_PEERS[direction][0])
    found = [each for each in rules if isinstance(each, dict)] if isinstance(rules, list) else []
    return any(_has_port(each, TF_PORT, "TCP") and _has_peers(each.get(_PEERS[direction][1]), pods) for each in found)


def _has_port(rule: Object, port: int, protocol: str) -> bool:
    ports = [each for each in rule.get("ports") or () if isinstance(each, dict)]
    numbers = [(each.get("port"), each.get("endPort")) for each in ports if each.get("protocol", "TCP") == protocol]
    return not ports or any(
        first <= port <= (last or first) if isinstance(first, int) else True for first, last in numbers
    )


def _has_peers(peers: Any, pods: Sequence[Object]) -> bool:
    if not isinstance(peers, list) or not peers:
        return True
    return any(
        "namespaceSelector" in each
        or "ipBlock" in each
        or all(_is_selected(section(each, "podSelector"), pod) for pod in pods)
        for each in peers
        if isinstance(each, dict)
    )


def _selects(policy: Object, pod: Object) -> bool:
    return _is_selected(section(policy, "spec", "podSelector"), pod)


def _is_selected(selector: Object, pod: Object) -> bool:
    return selects(selector, section(pod, "metadata", "labels"))
