"""Faults of containers, nodes and the API, as Kubernetes reports them, and that each is undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import ContainerStatus
from lightkube.resources.core_v1 import Node, Pod

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.config import NODES, REGISTRY_HOST
from tests.cluster.testcluster.faults import Faults, nodes, quota, registry
from tests.cluster.testcluster.faults.processes import (
    Container,
    NoMemoryLimit,
    Victim,
    exceed_memory,
    find_processes,
    kill_process,
)
from tests.cluster.testcluster.images.plan import REGISTRY_ONLY_TAG
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.scheduled_pods import ScheduledPod

pytestmark = pytest.mark.cluster

PULLED_IMAGE = f"{REGISTRY_HOST}/ml/digits:{REGISTRY_ONLY_TAG}"

PARENT = ("python3", "-c", "import subprocess; raise SystemExit(subprocess.call(['sleep', '600']) and 1)")
"""Stands for the launcher: one child, whose death ends it with exit code 1."""


def run_pods(admin: Access, namespace: str, *pods: ScheduledPod, wait: bool = True) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*(pod.manifest() for pod in pods)))
    for pod in pods if wait else ():
        await_pod(admin, namespace, pod.name, lambda status: bool(status.ready), "running")


def read_status(client: Client, namespace: str, name: str) -> ContainerStatus | None:
    status = client.get(Pod, name, namespace=namespace).status
    return status.containerStatuses[0] if status and status.containerStatuses else None


def await_pod(
    admin: Access, namespace: str, name: str, met: Callable[[ContainerStatus], bool], what: str
) -> ContainerStatus:
    def read(client: Client) -> ContainerStatus | None:
        status = read_status(client, namespace, name)
        return status if status and met(status) else None

    return admin.wait_for(read, f"{name} {what}", namespace=namespace)


def ended(status: ContainerStatus) -> tuple[int, str | None] | None:
    """Return code and reason of a container's last end, whether it has been started again or waits for that."""
    for state in (status.lastState, status.state):
        if state and state.terminated:
            return state.terminated.exitCode, state.terminated.reason
    return None


def test_deaths_in_containers(admin: Access, namespace: str, faults: Faults) -> None:
    names = ("launcher", "training", "every", "memory", "child-memory")
    pods = [ScheduledPod(name, PARENT, node=("node1", "node2")[i % 2]) for i, name in enumerate(names)]
    run_pods(admin, namespace, *pods)
    container = {name: Container(namespace, name) for name in names}
    for name in names:
        admin.wait_for(
            lambda _, of=container[name]: len(find_processes(faults.site, of, Victim.EVERY)) == 2,
            f"a child of {name}",
            namespace=namespace,
        )

    kill_process(faults.site, container["launcher"], Victim.LAUNCHER)
    kill_process(faults.site, container["training"], Victim.TRAINING)
    kill_process(faults.site, container["every"], Victim.EVERY)
    exceed_memory(faults.site, container["memory"], Victim.LAUNCHER)
    exceed_memory(faults.site, container["child-memory"], Victim.TRAINING)

    expected = {
        "launcher": (137, "Error"),
        "training": (1, "Error"),
        "every": (137, "Error"),
        "memory": (137, "OOMKilled"),
        # The kernel took the child; its parent lived to tell with a code of its own.
        "child-memory": (1, "OOMKilled"),
    }
    for name, end in expected.items():
        await_pod(admin, namespace, name, lambda status, end=end: ended(status) == end, f"ended with {end}")
        await_pod(admin, namespace, name, lambda status: status.restartCount == 1 and bool(status.ready), "restarted")


def test_memory_without_a_limit_cannot_be_exceeded(admin: Access, namespace: str, faults: Faults) -> None:
    run_pods(admin, namespace, ScheduledPod("endless", PARENT, memory_limit=None))

    with pytest.raises(NoMemoryLimit, match="endless"):
        exceed_memory(faults.site, Container(namespace, "endless"), Victim.LAUNCHER)


def test_images_that_cannot_be_pulled(admin: Access, namespace: str, faults: Faults) -> None:
    def waiting_message(name: str) -> str:
        def read(client: Client) -> str | None:
            status = read_status(client, namespace, name)
            waiting = status.state.waiting if status and status.state else None
            known = waiting and waiting.reason in ("ErrImagePull", "ImagePullBackOff")
            return waiting.message if waiting and known and "pull" in str(waiting.message) else None

        return admin.wait_for(read, f"a reason why {name} does not run", namespace=namespace)

    run_pods(admin, namespace, ScheduledPod("missing", image=f"{REGISTRY_HOST}/ml/digits:none"), wait=False)
    assert "not found" in waiting_message("missing")

    stopped = faults.inflict(registry.stop_registry())
    run_pods(admin, namespace, ScheduledPod("unreachable", image=PULLED_IMAGE), wait=False)
    assert "connection refused" in waiting_message("unreachable")
    faults.undo(stopped)

    denied = faults.inflict(registry.refuse_pulls(401))
    run_pods(admin, namespace, ScheduledPod("denied", image=PULLED_IMAGE), wait=False)
    assert "401" in waiting_message("denied")
    faults.undo(denied)

    run_pods(admin, namespace, ScheduledPod("pulled", image=PULLED_IMAGE))


def test_pods_that_are_not_let_in(admin: Access, namespace: str, faults: Faults) -> None:
    used_up = faults.inflict(quota.exhaust_quota(namespace))
    with pytest.raises(CommandFailed, match="exceeded quota: trainchart-fault"):
        run_pods(admin, namespace, ScheduledPod("extra"), wait=False)
    faults.undo(used_up)
    run_pods(admin, namespace, ScheduledPod("extra"))

    cordoned = [faults.inflict(nodes.cordon_node(node.name)) for node in NODES]
    run_pods(admin, namespace, ScheduledPod("homeless"), wait=False)
    message = admin.wait_for(
        lambda client: read_unschedulable(client, namespace, "homeless"), "unschedulable", namespace=namespace
    )
    assert "2 node(s) were unschedulable" in message
    for fault in cordoned:
        faults.undo(fault)
    await_pod(admin, namespace, "homeless", lambda status: bool(status.ready), "running")

    tainted = faults.inflict(nodes.taint_node("node1", "spot=ending:NoSchedule"))
    run_pods(admin, namespace, ScheduledPod("picky", node="node1"), wait=False)
    message = admin.wait_for(
        lambda client: read_unschedulable(client, namespace, "picky"), "unschedulable", namespace=namespace
    )
    assert "untolerated taint" in message
    faults.undo(tainted)
    await_pod(admin, namespace, "picky", lambda status: bool(status.ready), "running")


def read_unschedulable(client: Client, namespace: str, name: str) -> str | None:
    status = client.get(Pod, name, namespace=namespace).status
    for condition in (status.conditions if status else None) or []:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return condition.message
    return None


def test_evictions_and_a_drain(admin: Access, namespace: str, faults: Faults) -> None:
    guarded = ScheduledPod("guarded", node="node2", labels={"app": "guarded"})
    run_pods(admin, namespace, ScheduledPod("evicted", node="node1"), ScheduledPod("drained", node="node1"), guarded)
    admin.kubectl("create", "pdb", "guarded", "-n", namespace, "--selector=app=guarded", "--min-available=1")

    faults.inflict(nodes.evict_pod(namespace, "evicted"))
    with pytest.raises(CommandFailed, match="disruption budget"):
        faults.inflict(nodes.evict_pod(namespace, "guarded"))
    drained = faults.inflict(nodes.drain_node("node1"))

    left = {pod.metadata.name for pod in admin.client().list(Pod, namespace=namespace) if pod.metadata}
    assert left == {"guarded"}
    assert read_cordoned(admin) == ["node1"]
    faults.undo(drained)
    assert read_cordoned(admin) == []


def read_cordoned(admin: Access) -> list[str | None]:
    listed = admin.client().list(Node)
    return [node.metadata.name for node in listed if node.metadata and node.spec and node.spec.unschedulable]
