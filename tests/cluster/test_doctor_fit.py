"""What doctor says about room on nodes is what the scheduler does: on a hundred random clusters of fake nodes."""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.fake_nodes import TOLERATION, made_nodes, make_node
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.packing import MAYBE, NO, YES, judge_fit
from trainchart.doctor.room import read_room

pytestmark = pytest.mark.cluster

CLUSTERS = 100
CLUSTER_LABEL, ZONE_LABEL, GROUP_LABEL = "trainchart.test/cluster", "trainchart.test/zone", "trainchart.test/group"
MOST_MAYBE = 10
"""A verdict that decides nothing is worth nothing."""
SCHEDULING_SECONDS = 180
IMAGE = "registry.trainchart.test/never/pulled"


def make_nodes(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Make the nodes of one cluster: of several sizes, zones and taints, some cordoned."""
    return [_make_node(chance, f"fit{number}-{index}", number) for index in range(chance.randint(1, 6))]


def _make_node(chance: random.Random, name: str, number: int) -> dict[str, Any]:
    node = make_node(name, chance.choice((0, 0, 1, 2, 4)))
    node["metadata"]["labels"] |= {CLUSTER_LABEL: str(number), ZONE_LABEL: chance.choice("ab")}
    room = node["status"]["allocatable"]
    room |= {"cpu": str(chance.choice((2, 4, 8))), "memory": f"{chance.choice((4, 8, 16))}Gi"}
    room["pods"] = str(chance.choice((3, 110, 110)))
    node["status"]["capacity"] = room
    node["spec"]["unschedulable"] = chance.random() < 0.1
    if chance.random() < 0.15:
        node["spec"]["taints"].append({"key": "trainchart.test/apart", "value": "yes", "effect": "NoSchedule"})
    return node


def make_pod(name: str, group: str, number: int, chance: random.Random) -> dict[str, Any]:
    """Make a pod of a cluster with random requests and rules."""
    requests = {"cpu": chance.choice(("500m", "1", "2", "3")), "memory": chance.choice(("512Mi", "2Gi", "5Gi"))}
    limits = {GPU_RESOURCE: "1"} if chance.random() < 0.3 else {}
    selector = {CLUSTER_LABEL: str(number)}
    if chance.random() < 0.15:
        selector[ZONE_LABEL] = "a"
    own = {"matchLabels": {GROUP_LABEL: group}}
    spec: dict[str, Any] = {
        "nodeSelector": selector,
        "tolerations": [TOLERATION],
        "containers": [{"name": "main", "image": IMAGE, "resources": {"requests": requests, "limits": limits}}],
    }
    if chance.random() < 0.2:
        spec["tolerations"].append({"key": "trainchart.test/apart", "operator": "Exists"})
    rule = chance.random()
    if rule < 0.1:
        term = {"labelSelector": own, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif rule < 0.2:
        spread = {"maxSkew": 1, "topologyKey": ZONE_LABEL, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
        spec["topologySpreadConstraints"] = [spread]
    elif rule < 0.25:
        term = {"labelSelector": own, "topologyKey": ZONE_LABEL}
        spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {GROUP_LABEL: group, CLUSTER_LABEL: str(number)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def make_groups(chance: random.Random, number: int) -> list[PodGroup]:
    names = [f"c{number}-{role}" for role in ("chief", "worker", "ps")[: chance.randint(1, 3)]]
    return [PodGroup(name, chance.randint(1, 5), make_pod(name, name, number, chance), True) for name in names]


def list_pods(groups: list[PodGroup]) -> list[dict[str, Any]]:
    return [
        {**group.pod, "metadata": {**group.pod["metadata"], "name": f"{group.name}-{index}"}}
        for group in groups
        for index in range(group.count)
    ]


def create(admin: Access, namespace: str, objects: list[dict[str, Any]]) -> None:
    made = {"apiVersion": "v1", "kind": "List", "items": objects}
    admin.kubectl("create", "-n", namespace, "-f", "-", text=json.dumps(made))


def is_placed(pod: Pod) -> bool:
    return bool(pod.spec and pod.spec.nodeName)


def is_decided(pod: Pod) -> bool:
    conditions = (pod.status and pod.status.conditions) or []
    return is_placed(pod) or any(each.reason == "Unschedulable" for each in conditions)


def label_of(pod: Pod, key: str) -> str:
    return str(((pod.metadata and pod.metadata.labels) or {}).get(key))


def wait_for_decisions(admin: Access, namespace: str) -> list[Pod]:
    """Wait until the scheduler has placed or refused every pod, and return them."""
    pods: list[Pod] = []

    def are_decided(client: Client) -> bool:
        pods[:] = client.list(Pod, namespace=namespace)
        return all(map(is_decided, pods))

    admin.wait_for(are_decided, "every pod placed or refused", namespace=namespace, deadline_seconds=SCHEDULING_SECONDS)
    return pods


@pytest.fixture
def open_namespace(admin: Access) -> Iterator[str]:
    """A namespace without a quota, for more pods than tests have otherwise."""
    name = f"fit-{secrets.token_hex(3)}"
    admin.kubectl("create", "namespace", name)
    yield name
    admin.kubectl("delete", "namespace", name, "--wait=false")


def test_the_verdict_is_that_of_the_scheduler(lasting_cluster: Cluster, admin: Access, open_namespace: str) -> None:
    chance = random.Random(31)
    nodes = [node for number in range(CLUSTERS) for node in make_nodes(chance, number)]
    groups = [make_groups(chance, number) for number in range(CLUSTERS)]
    namespace = open_namespace
    with made_nodes(lasting_cluster, admin, nodes):
        before = [make_pod(f"before-{number}", "before", number, chance) for number in range(CLUSTERS)]
        create(admin, namespace, before)
        wait_for_decisions(admin, namespace)
        seen = [json.loads(admin.kubectl("get", kind, "-A", "-o", "json"))["items"] for kind in ("nodes", "pods")]
        room = read_room(*seen)
        verdicts = [judge_fit(each, room, namespace, random.Random(0)).verdict for each in groups]
        create(admin, namespace, [pod for each in groups for pod in list_pods(each)])
        pods = wait_for_decisions(admin, namespace)
    waiting = {
        label_of(pod, CLUSTER_LABEL) for pod in pods if not is_placed(pod) and label_of(pod, GROUP_LABEL) != "before"
    }
    wrong = {
        number: verdict
        for number, verdict in enumerate(verdicts)
        if verdict != MAYBE and (verdict == YES) is (str(number) in waiting)
    }
    assert not wrong
    assert {YES, NO} <= set(verdicts)
    assert verdicts.count(MAYBE) <= MOST_MAYBE
