"""Which nodes are open to a group of pods, and why the others are not: in words for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from trainchart.cluster.node_selection import find_closing_taint, is_selected
from trainchart.doctor.needs import PODS, PodGroup
from trainchart.doctor.room import Node, Room

_MOST = 4
"""Reasons that are told."""
_THOUSAND = 1000
_SIZES = ("memory", "ephemeral-storage", "storage")
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def find_open_nodes(group: PodGroup, room: Room) -> tuple[int, ...]:
    """Return the indices of the nodes that would take a pod of the group if they were empty."""
    return tuple(number for number, node in enumerate(room.nodes) if not describe_closure(group, node))


def describe_closure(group: PodGroup, node: Node) -> str:
    """Return what keeps all pods of a group away from a node, whatever runs there; "" where nothing does."""
    spec = group.spec
    name = spec.get("nodeName")
    if name and name != node.name:
        return f"are not the node {name}, which the pods name"
    taint = find_closing_taint(spec, node.document)
    if taint is not None:
        value = f"={taint['value']}" if taint.get("value") else ""
        return f"taint {taint.get('key')}{value}:{taint.get('effect')}"
    if node.is_silent:
        return "not ready"
    if not is_selected(spec, node.document):
        return "do not have the labels that the pods ask for (nodeSelector, nodeAffinity)"
    lacking = [resource for resource, amount in group.requests.items() if amount > node.total.get(resource, 0)]
    return f"{lacking[0]} {describe_amount(lacking[0], node.total.get(lacking[0], 0))} in all" if lacking else ""


def describe_refusals(group: PodGroup, room: Room, free: Sequence[Mapping[str, int]]) -> str:
    """Return why no further pod of a group finds a node when only `free` is left of each."""
    reasons: Counter[str] = Counter()
    for number, node in enumerate(room.nodes):
        reasons[describe_closure(group, node) or _describe_lack(group, free[number])] += 1
    told = [f"{count} of {len(room.nodes)} nodes: {reason}" for reason, count in reasons.most_common(_MOST)]
    rest = len(reasons) - len(told)
    return "; ".join([*told, *([f"{rest} more reasons"] if rest > 0 else [])]) or "the cluster has no node"


def describe_request(group: PodGroup) -> str:
    """Return what each pod of a group requests, as in "cpu 4, memory 8Gi, nvidia.com/gpu 1"."""
    wanted = ((name, amount) for name, amount in group.requests.items() if name != PODS and amount)
    return ", ".join(f"{name} {describe_amount(name, amount)}" for name, amount in wanted) or "nothing"


def _describe_lack(group: PodGroup, free: Mapping[str, int]) -> str:
    lacking = [name for name, amount in group.requests.items() if amount > free.get(name, 0)]
    if not lacking:
        return "ports are taken, or placement rules forbid it"
    # Of several resources, the dearest is told: a GPU before memory.
    lacking.sort(key=lambda name: "/" not in name)
    return f"too little {lacking[0]} left"


def describe_amount(resource: str, thousandths: int) -> str:
    """Return an amount as people write it, of resources and of what quotas make of their names."""
    amount = thousandths / _THOUSAND
    if resource.rpartition(".")[2] in _SIZES:
        for unit, size in _UNITS:
            if amount >= size:
                return f"{amount / size:.4g}{unit}"
    return f"{amount:g}"
