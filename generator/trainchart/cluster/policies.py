"""Finds the NetworkPolicies of others that keep the pods of a training from each other. Pure.

Policies only ever add what is allowed: one of another owner limits a direction that no policy of the release covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trainchart.check.objects import selects
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
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.contract import INSTANCE_LABEL, TF_PORT
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names

_PEERS = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""Direction → where a policy lists its rules, and where a rule lists its peers."""
_DNS_PORT = 53
_NAME_LABEL = "kubernetes.io/metadata.name"


def find_foreign_policies(report: Report, seen: Snapshot, policies: Objects) -> Iterator[str]:
    """Yield which policies of others keep the training's pods from each other."""
    pods = [pod for pod in listed(seen.pods) if is_training_pod(pod)]
    own = [each for each in listed(policies) if label(each, INSTANCE_LABEL) == report.key.release]
    limits: dict[tuple[str, str], list[str]] = {}
    for direction in _PEERS:
        covering = [each for each in listed(policies) if direction in _list_directions(each)]
        for pod in pods:
            selecting = [each for each in covering if _selects(each, pod)]
            if not any(each in own or _admits(each, direction, pods) for each in selecting):
                for policy in selecting:
                    limits.setdefault((name_of(policy), direction), []).append(name_of(pod))
    made = {name_of(each): section(each, "metadata").get("creationTimestamp") for each in listed(policies)}
    for (name, direction), names in limits.items():
        yield (
            f"{_introduce(name, made[name])} selects {list_names(names)} ({direction}) and does not admit their "
            f"traffic to each other: its owner must admit the pods of this release ({_describe(name, report)})"
        )
    yield from _find_cut_off_controllers(report, seen, policies)
    yield from _find_closed_dns(report, seen, policies)


def _find_closed_dns(report: Report, seen: Snapshot, policies: Objects) -> Iterator[str]:
    """Yield which policies of others keep pods from the cluster's DNS, where names do not resolve."""
    if not report.lacks_names:
        return
    limits: dict[str, tuple[Object, list[str]]] = {}
    for pod in filter(is_training_pod, listed(seen.pods)):
        selecting = [each for each in listed(policies) if "Egress" in _list_directions(each) and _selects(each, pod)]
        if not any(label(each, INSTANCE_LABEL) == report.key.release or _admits_dns(each) for each in selecting):
            for policy in selecting:
                limits.setdefault(name_of(policy), (policy, []))[1].append(name_of(pod))
    for name, (policy, names) in limits.items():
        labels = _label_dns_namespaces(policy)
        only = (
            f" but in namespaces with the label {labels}: kubectl get namespaces -l {labels} must list that of the DNS"
            if labels
            else ""
        )
        yield (
            f"{_introduce(name, section(policy, 'metadata').get('creationTimestamp'))} selects {list_names(names)} "
            f"(Egress), where names do not resolve, and does not admit port 53 (DNS){only}. Its owner must admit the "
            f"namespace of the DNS, as by kubernetes.io/metadata.name: kube-system ({_describe(name, report)})"
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


def _find_cut_off_controllers(report: Report, seen: Snapshot, policies: Objects) -> Iterator[str]:
    """Yield which policies of others keep the run controller from what is outside of its namespace."""
    for pod in filter(is_controllers, listed(seen.pods)):
        selecting = [each for each in listed(policies) if "Egress" in _list_directions(each) and _selects(each, pod)]
        if any(label(each, INSTANCE_LABEL) == report.key.release or _admits_elsewhere(each) for each in selecting):
            continue
        for policy in selecting:
            name = name_of(policy)
            yield (
                f"{_introduce(name, section(policy, 'metadata').get('creationTimestamp'))} selects the run controller "
                f"{name_of(pod)} (Egress) and does not admit what is outside of the namespace, so perhaps not the API "
                "server. Without it, the run controller neither records steps nor restarts or ends the run: its owner "
                f"must admit the API server and the cluster's DNS to it ({_describe(name, report)})"
            )


def _introduce(name: str, made: Any) -> str:
    since = describe_time(parse_time(made))
    return f"the NetworkPolicy {name}, which is not this release's and was made {since},"


def _describe(name: str, report: Report) -> str:
    return f"kubectl describe networkpolicy {name} -n {report.key.namespace}"


def _admits_elsewhere(policy: Object) -> bool:
    """Say whether a policy admits anything outside of its namespace."""
    rules = items_of(section(policy, "spec"), "egress")
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
