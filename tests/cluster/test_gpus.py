"""GPUs: pods that ask for one run where there are some, wait with a reason where none is left, and nobody else has any.

One release asks for one GPU more than the cluster has. Its program only says what it sees of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Node, Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.releases import PROJECT, Release, container_statuses, make_values, merge_values

pytestmark = pytest.mark.cluster

ROLES = ("chief", "worker", "ps", "evaluator")
SAY_AND_WAIT = ["sh", "-c", 'echo "devices: ${NVIDIA_VISIBLE_DEVICES-not told}"; exec sleep 86400']


@pytest.fixture(scope="module")
def gpus(admin: Access) -> Mapping[str, int]:
    """Node → GPUs that it advertises."""
    found = read_gpus(admin.client())
    if not any(found.values()):
        pytest.skip(f"no node of this cluster advertises {GPU_RESOURCE}")
    return found


@pytest.fixture(scope="module")
def release(admin: Access, module_namespace: str, gpus: Mapping[str, int]) -> Release:
    changes = {
        "command": SAY_AND_WAIT,
        "tensorboard": {"enabled": False},
        "roles": {
            **{
                role: {
                    "cpu": "10m",
                    "memory": "32Mi",
                    "shmSize": "16Mi",
                    "stopGraceSeconds": 1,
                    "saveWaitSeconds": 0,
                }
                for role in ROLES
            },
            "evaluator": {"replicas": 0},
        },
    }
    workers = {"roles": {"worker": {"replicas": sum(gpus.values()) + 1, "gpus": 1}}}
    values = merge_values(merge_values(make_values("mnist", ROLES), changes), workers)
    release = Release(admin, module_namespace, "hungry", PROJECT / "charts" / "mnist", values)
    release.install()
    return release


@pytest.fixture
def full(release: Release, gpus: Mapping[str, int]) -> dict[str, Pod]:
    """The release's pods once every GPU is in use and the rest waits."""
    return wait_for_gpus_in_use(release, gpus)


def read_gpus(client: Client) -> dict[str, int]:
    nodes = {str(node.metadata.name): node.status for node in client.list(Node) if node.metadata}
    return {name: int((status.allocatable or {}).get(GPU_RESOURCE, 0)) for name, status in nodes.items() if status}


def wait_for_gpus_in_use(release: Release, expected: Mapping[str, int]) -> dict[str, Pod]:
    """Wait until so many workers run on each node, every other one is refused, and all else runs."""

    def read(client: Client) -> dict[str, Pod] | None:
        pods = release.pods(client)
        workers = {name: pod for name, pod in pods.items() if role_of(pod) == "worker"}
        refused = [pod for pod in workers.values() if why_pending(pod)]
        waits_for_none = all(is_running(pod) for pod in pods.values() if pod not in refused)
        is_whole = len(pods) == len(workers) + 2 and len(workers) == release.values["roles"]["worker"]["replicas"]
        return pods if is_whole and waits_for_none and used_gpus(pods) == without_zeros(expected) else None

    what = f"workers on {dict(expected)}"
    return release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=120)


def role_of(pod: Pod) -> str:
    assert pod.metadata and pod.metadata.labels
    return str(pod.metadata.labels["app.kubernetes.io/component"])


def is_running(pod: Pod) -> bool:
    ends = pod.metadata is None or pod.metadata.deletionTimestamp is not None
    return not ends and all(status.started for status in container_statuses(pod))


def why_pending(pod: Pod) -> str:
    """Return why the scheduler refuses a pod; empty if it does not."""
    conditions = (pod.status.conditions or []) if pod.status else []
    return "".join(
        f"{condition.reason}: {condition.message}"
        for condition in conditions
        if condition.type == "PodScheduled" and condition.status == "False"
    )


def used_gpus(pods: Mapping[str, Pod]) -> dict[str, int]:
    nodes = [pod.spec.nodeName for pod in pods.values() if pod.spec and pod.spec.nodeName and role_of(pod) == "worker"]
    return {str(node): nodes.count(node) for node in nodes}


def without_zeros(numbers: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in numbers.items() if number}


def test_workers_run_where_gpus_are_and_extra_ones_say_why_not(full: dict[str, Pod], gpus: Mapping[str, int]) -> None:
    assert used_gpus(full) == without_zeros(gpus)
    reasons = [why_pending(pod) for pod in full.values() if why_pending(pod)]
    assert len(reasons) == 1
    assert reasons[0].startswith("Unschedulable: ")
    assert f"Insufficient {GPU_RESOURCE}" in reasons[0]


def test_only_workers_get_gpus(full: dict[str, Pod]) -> None:
    limits: dict[str, set[tuple[str | None, str | None]]] = {}
    for pod in full.values():
        assert pod.spec
        for container in pod.spec.containers:
            resources = container.resources.to_dict() if container.resources else {}
            asked = {kind: amounts.get(GPU_RESOURCE) for kind, amounts in resources.items()}
            limits.setdefault(role_of(pod), set()).add((asked.get("limits"), asked.get("requests")))

    assert limits == {"worker": {("1", "1")}, "chief": {(None, None)}, "ps": {(None, None)}}


def test_who_has_no_gpu_is_told_so_and_who_has_one_is_not(
    admin: Access, release: Release, full: dict[str, Pod]
) -> None:
    running = {name: pod for name, pod in full.items() if is_running(pod)}

    def read(client: Client) -> dict[str, set[str]] | None:
        said: dict[str, set[str]] = {}
        for name, pod in running.items():
            lines = [line.strip() for line in client.log(name, namespace=release.namespace)]
            said.setdefault(role_of(pod), set()).add(next((line for line in lines if line.startswith("devices")), ""))
        return said if all(all(lines) for lines in said.values()) else None

    said = admin.wait_for(read, "a word from every pod", namespace=release.namespace)
    assert said == {"chief": {"devices: void"}, "ps": {"devices: void"}, "worker": {"devices: not told"}}


@pytest.fixture
def node_without_gpus(own_cluster: Cluster, admin: Access, gpus: Mapping[str, int]) -> Iterator[str]:
    """The last node, whose GPUs have gone."""
    node = max(gpus)

    def advertise(number: int) -> None:
        amounts = {GPU_RESOURCE: str(number)}
        patch = json.dumps({"status": {"capacity": amounts, "allocatable": amounts}})
        admin.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "--patch", patch)

    advertise(0)
    yield node
    advertise(gpus[node])


def test_no_worker_comes_back_to_a_node_that_has_lost_its_gpus(
    admin: Access, release: Release, full: dict[str, Pod], gpus: Mapping[str, int], node_without_gpus: str
) -> None:
    on_node = [
        name
        for name, pod in full.items()
        if role_of(pod) == "worker" and pod.spec and pod.spec.nodeName == node_without_gpus
    ]
    admin.kubectl("delete", "pods", *on_node, "-n", release.namespace, "--wait=false")

    pods = wait_for_gpus_in_use(release, {**gpus, node_without_gpus: 0})
    reasons = [why_pending(pod) for pod in pods.values() if why_pending(pod)]
    assert len(reasons) == len(on_node) + 1
    assert all(f"Insufficient {GPU_RESOURCE}" in reason for reason in reasons)


def test_workers_that_waited_start_when_a_node_gets_gpus(full: dict[str, Pod], gpus: Mapping[str, int]) -> None:
    """After the test above its node has GPUs again."""
    assert used_gpus(full) == without_zeros(gpus)
