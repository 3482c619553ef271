"""Fake nodes on demand: kwok plays the kubelet of hundreds of nodes, on which pods only seem to run.

Real nodes are not touched: kwok keeps to nodes with its annotation, and those carry a taint. A fake pod has no logs,
no exec and no network; what becomes of it is told by annotations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lightkube.core.exceptions import ApiError
from lightkube.resources.core_v1 import Node, Pod

from . import config
from .access import Access
from .cluster import Cluster
from .components import KUBECONFIGS, Component
from .config import INSIDE
from .programs import find_program

EXIT_CODE = "trainchart.test/exit-code"
"""Annotation of a fake pod: its containers end with this code, for as long as it is set."""
EXIT_REASON = "trainchart.test/exit-reason"
"""Annotation beside EXIT_CODE: the reason that is told, such as OOMKilled; Error if absent."""
SELECTOR = {"trainchart.test/node": "fake"}
"""Label of fake nodes, for a nodeSelector."""
TOLERATION = {"key": "trainchart.test/fake", "operator": "Exists"}
"""What a pod must tolerate to be put onto a fake node."""

_ANNOTATION = ("kwok.x-k8s.io/node", "fake")
_STAGES = Path(__file__).parent / "fake_stages.yaml"
_COMPONENT = "kwok"
_READY_SECONDS = 60


@dataclass(frozen=True)
class FakeNodes:
    """Fake nodes that are Ready."""

    names: tuple[str, ...]


@contextmanager
def fake_nodes(cluster: Cluster, access: Access, count: int, gpus: int = 8) -> Iterator[FakeNodes]:
    """Run kwok with so many Ready nodes, and remove them with everything on them."""
    with made_nodes(cluster, access, [make_node(f"fake{number}", gpus) for number in range(count)]) as made:
        yield made


@contextmanager
def made_nodes(cluster: Cluster, access: Access, nodes: Sequence[dict[str, Any]]) -> Iterator[FakeNodes]:
    """Run kwok with these nodes, which make_node has begun; remove them with everything on them."""
    names = tuple(node["metadata"]["name"] for node in nodes)
    stages = cluster.folder / _STAGES.name
    stages.write_text(_STAGES.read_text())
    cluster.run_component(plan_kwok(str(find_program("kwok")), str(INSIDE / _STAGES.name)))
    try:
        made = {"apiVersion": "v1", "kind": "List", "items": list(nodes)}
        access.kubectl("create", "-f", "-", text=json.dumps(made))
        access.wait_for(
            lambda client: all(_is_ready(node) for node in client.list(Node, labels=dict(SELECTOR))),
            f"{len(names)} fake nodes Ready",
            namespace="default",
            deadline_seconds=_READY_SECONDS,
        )
        yield FakeNodes(names)
    finally:
        _remove(access, names)
        cluster.stop_component(_COMPONENT)


def plan_kwok(program: str, stages: str) -> Component:
    """Plan kwok for the nodes with its annotation."""
    key, value = _ANNOTATION
    arguments = (
        f"--kubeconfig={KUBECONFIGS}/admin",
        f"--config={stages}",
        f"--manage-nodes-with-annotation-selector={key}={value}",
        "--node-lease-duration-seconds=40",
        # An address range that no real pod has.
        "--cidr=10.245.0.0/16",
        f"--node-ip={config.CONTROL_PLANE_ADDRESS}",
    )
    return Component(_COMPONENT, (program, *arguments))


def make_node(name: str, gpus: int) -> dict[str, Any]:
    """Make a fake node, with more room than any test fills but for its GPUs."""
    room = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110", config.GPU_RESOURCE: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**SELECTOR, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": dict([_ANNOTATION]),
        },
        "spec": {"taints": [{"key": TOLERATION["key"], "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }


def _remove(access: Access, names: tuple[str, ...]) -> None:
    client = access.client()
    for name in names:
        with suppress_absence():
            client.delete(Node, name)
    # A pod of a node that is no more would wait for a kubelet; the garbage collector takes a minute to see it.
    for pod in client.list(Pod, namespace="*"):
        if pod.metadata and pod.spec and pod.spec.nodeName in names:
            with suppress_absence():
                client.delete(Pod, str(pod.metadata.name), namespace=pod.metadata.namespace, grace_period=0)


@contextmanager
def suppress_absence() -> Iterator[None]:
    """Pass over what is not there any more."""
    try:
        yield
    except ApiError as error:
        if error.status.code != HTTPStatus.NOT_FOUND:
            raise


def _is_ready(node: Node) -> bool:
    conditions = (node.status and node.status.conditions) or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)
