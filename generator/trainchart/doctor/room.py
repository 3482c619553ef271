"""What is free on the nodes of a cluster, and which pods are there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainchart.cluster.node_states import find_silence
from trainchart.cluster.snapshot import Object, has_ended, name_of, namespace_of, section
from trainchart.doctor.needs import PODS, Amounts, add_requests, list_ports, read_thousandths


@dataclass(frozen=True)
class PlacedPod:
    """A pod that has a node, as far as it matters to pods that come."""

    node: int
    """Index of its node."""
    namespace: str
    labels: Mapping[str, object]
    spec: Object


@dataclass(frozen=True)
class Node:
    """A node, and what is left of it."""

    document: Object
    total: Amounts
    free: Amounts
    ports: frozenset[tuple[str, int]]
    """Ports of the node that its pods take."""

    @property
    def name(self) -> str:
        return name_of(self.document)

    @property
    def labels(self) -> Mapping[str, object]:
        return section(self.document, "metadata", "labels")

    @property
    def is_silent(self) -> bool:
        """Whether it is not ready; Kubernetes marks it with a taint a moment later."""
        return bool(find_silence(self.document))


@dataclass(frozen=True)
class Room:
    """The nodes of a cluster and the pods that hold something of them."""

    nodes: tuple[Node, ...]
    pods: tuple[PlacedPod, ...]


def read_room(nodes: Sequence[Object], pods: Iterable[Object]) -> Room:
    """Return the room of a cluster: `pods` are those of all namespaces, also waiting and ended ones."""
    index = {name: number for number, node in enumerate(nodes) if (name := name_of(node))}
    held = [pod for pod in pods if not has_ended(pod) and str(section(pod, "spec").get("nodeName") or "") in index]
    placed = [
        PlacedPod(
            index[str(section(pod, "spec")["nodeName"])],
            namespace_of(pod),
            section(pod, "metadata", "labels"),
            section(pod, "spec"),
        )
        for pod in held
    ]
    used: list[dict[str, int]] = [{} for _ in nodes]
    ports: list[set[tuple[str, int]]] = [set() for _ in nodes]
    for pod in placed:
        for resource, amount in add_requests(pod.spec).items():
            used[pod.node][resource] = used[pod.node].get(resource, 0) + amount
        ports[pod.node] |= list_ports(pod.spec)
    made = (_make_node(node, used[number], frozenset(ports[number])) for number, node in enumerate(nodes))
    return Room(tuple(made), tuple(placed))


def _make_node(document: Object, used: Amounts, ports: frozenset[tuple[str, int]]) -> Node:
    allocatable = section(document, "status", "allocatable")
    total = {str(name): read_thousandths(value) for name, value in allocatable.items()}
    total.setdefault(PODS, 0)
    return Node(document, total, {name: amount - used.get(name, 0) for name, amount in total.items()}, ports)
