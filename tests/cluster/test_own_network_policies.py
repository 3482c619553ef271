"""The test cluster enforces NetworkPolicies as they are specified: tests of charts' policies rest on that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from lightkube.resources.core_v1 import Pod, Service

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.pods import dump_objects, plan_pod
from tests.cluster.testcluster.reach import CONNECT, wait_for_reach

pytestmark = pytest.mark.cluster

SERVE = "python3 -m http.server 9000 --bind 0.0.0.0 & exec python3 -m http.server 8000 --bind 0.0.0.0"
CLIENTS = {"peer-near": "node1", "peer-far": "node2", "stranger-near": "node1", "stranger-far": "node2"}
ALL = {client: {"open", "closed", "service"} for client in CLIENTS}
PEERS_TO_OPEN = {
    "peer-near": {"open", "service"},
    "peer-far": {"open", "service"},
    "stranger-near": set(),
    "stranger-far": set(),
}
INGRESS = {
    "podSelector": {"matchLabels": {"app": "server"}},
    "policyTypes": ["Ingress"],
    "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "peer"}}}], "ports": [{"port": "open"}]}],
}
EGRESS = {
    "podSelector": {"matchLabels": {"app": "stranger"}},
    "policyTypes": ["Egress"],
    "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "server"}}}], "ports": [{"port": 9000}]}],
}


@pytest.fixture(scope="module")
def targets(admin: Access, module_namespace: str) -> Iterator[Mapping[str, str]]:
    """A server on node1 and its clients, ready; what each of the server's doors is called, and its address."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": "open"}]},
    }
    server = plan_pod("server", SERVE, node="node1", labels={"app": "server"}, ports={"open": 8000, "closed": 9000})
    clients = [
        plan_pod(name, "sleep 3600", node=node, labels={"app": name.partition("-")[0]})
        for name, node in CLIENTS.items()
    ]
    admin.kubectl("apply", "-n", module_namespace, "-f", "-", text=dump_objects(service, server, *clients))
    names = [f"pod/{name}" for name in ("server", *CLIENTS)]
    admin.kubectl("wait", "--for=condition=Ready", *names, "-n", module_namespace, "--timeout=60s")
    client = admin.client()
    pod_status = client.get(Pod, "server", namespace=module_namespace).status
    service_spec = client.get(Service, "server", namespace=module_namespace).spec
    assert pod_status is not None
    assert service_spec is not None
    address = str(pod_status.podIP)
    yield {"open": f"{address}:8000", "closed": f"{address}:9000", "service": f"{service_spec.clusterIP}:80"}


def test_without_a_policy_everybody_reaches_everything(
    admin: Access, own_cluster: Cluster, module_namespace: str, targets: Mapping[str, str]
) -> None:
    _wait_for_reach(admin, module_namespace, targets, ALL)


def test_policy_admits_only_peers_and_only_at_the_open_port(
    admin: Access, own_cluster: Cluster, module_namespace: str, targets: Mapping[str, str]
) -> None:
    _apply_policy(admin, module_namespace, "server", INGRESS)

    _wait_for_reach(admin, module_namespace, targets, PEERS_TO_OPEN)
    # The kubelet's probes come from the node itself, which no policy keeps out.
    probe = own_cluster.run_inside(["python3", "-c", CONNECT, targets["closed"]], node="node1")
    assert json.loads(probe.stdout) == [True]

    admin.kubectl("delete", "networkpolicy", "server", "-n", module_namespace)
    _wait_for_reach(admin, module_namespace, targets, ALL)
    for node in ("node1", "node2"):
        saved = own_cluster.run_inside(["iptables-save", "-t", "mangle"], node=node).stdout
        assert [line.split()[0] for line in saved.splitlines() if line.startswith(":TC-")] == [":TC-POLICY"]


def test_what_may_leave_and_what_may_enter_both_count(
    admin: Access, own_cluster: Cluster, module_namespace: str, targets: Mapping[str, str]
) -> None:
    _apply_policy(admin, module_namespace, "strangers", EGRESS)
    out_of_one_door = ALL | {"stranger-near": {"closed"}, "stranger-far": {"closed"}}
    _wait_for_reach(admin, module_namespace, targets, out_of_one_door)

    _apply_policy(admin, module_namespace, "server", INGRESS)
    _wait_for_reach(admin, module_namespace, targets, PEERS_TO_OPEN)
    admin.kubectl("delete", "networkpolicy", "--all", "-n", module_namespace)
    _wait_for_reach(admin, module_namespace, targets, ALL)


def _apply_policy(admin: Access, namespace: str, name: str, spec: Mapping[str, Any]) -> None:
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(policy))


def _wait_for_reach(
    admin: Access, namespace: str, targets: Mapping[str, str], expected: Mapping[str, set[str]]
) -> None:
    wait_for_reach(admin, targets, expected, "who reaches what", lambda _: namespace)
