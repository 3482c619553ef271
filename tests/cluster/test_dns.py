"""Pods find each other by name: before they are ready, under the longest names, in any cluster domain, and again after
one has come back with another address.

A release of stand-ins, none of which is ever ready, shows what resolves; a short real training shows that it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import NodeSpec
from lightkube.resources.core_v1 import Node, Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.releases import PROJECT, Release, container_statuses, merge_values, mnist_values
from tests.cluster.testcluster.stand_in import Report, plan_stand_ins, read_report, wait_for_reports

pytestmark = pytest.mark.cluster

HELM_LIMIT = 53
LONG_NAME = f"{'the-longest-release-name-that-helm-allows-':x<{HELM_LIMIT}}"
NEVER = {"tcpSocket": {"port": 1}, "periodSeconds": 5, "failureThreshold": 1000}
"""A probe that never succeeds, of a port that nobody listens on."""
HOST = "kubernetes.io/hostname"
MAX_STEPS = 800
CHIEF, PS = "train-mnist-chief-0", "train-mnist-ps-0"


@pytest.fixture(scope="module")
def nodes(admin: Access) -> list[str]:
    """Names of the nodes that take pods; on the tests' own cluster they differ in their cluster domain."""
    found = [node for node in admin.client().list(Node) if not (node.spec or NodeSpec()).taints]
    return sorted(str(node.metadata.name) for node in found if node.metadata)


@pytest.fixture(scope="module")
def long_release(admin: Access, module_namespace: str, nodes: list[str]) -> Release:
    """Stand-ins on the last node; nobody is ever ready, and the ps does not even get beyond its start-up."""
    changes = {
        "nodeSelector": {HOST: nodes[-1]},
        "readinessProbe": NEVER,
        "roles": {"ps": {"startupProbe": NEVER}, "evaluator": {"replicas": 0}},
    }
    release = plan_stand_ins(admin, module_namespace, LONG_NAME, "mnist", changes)
    release.install()
    return release


@pytest.fixture(scope="module")
def reports(long_release: Release) -> dict[str, Report]:
    """Task → what its pod found."""
    reports = wait_for_reports(long_release, 4)
    return {task_of(report): report for report in reports.values()}


def task_of(report: Report) -> str:
    task = report.tf_config["task"]
    return f"{task['type']}-{task['index']}"


def addresses_of(pods: Mapping[str, Pod]) -> dict[str, str]:
    return {name: str(pod.status.podIP) for name, pod in pods.items() if pod.status}


@pytest.fixture(scope="module")
def training(admin: Access, module_namespace: str, nodes: list[str]) -> Release:
    """A real training whose ps is on another node than the others, hence in the other cluster domain."""
    changes = {
        "tensorboard": {"enabled": False},
        "nodeSelector": {HOST: nodes[0]},
        "roles": {
            "worker": {"replicas": 1},
            "ps": {"nodeSelector": {HOST: nodes[-1]}, "saveWaitSeconds": 0},
            "evaluator": {"replicas": 0},
        },
    }
    values = merge_values(mnist_values(maxSteps=MAX_STEPS, checkpointSteps=50, batchSize=32), changes)
    release = Release(admin, module_namespace, "train", PROJECT / "charts" / "mnist", values)
    release.install()
    return release


@pytest.fixture(scope="module")
def lost_address(admin: Access, training: Release) -> str:
    """Address of the training's ps, which is deleted as soon as there is a checkpoint."""

    def has_saved(client: Client) -> bool:
        return any("saved /checkpoints/ckpt-50" in line for line in client.log(CHIEF, namespace=training.namespace))

    training.wait_until_running(3)
    admin.wait_for(has_saved, "a first checkpoint", namespace=training.namespace, deadline_seconds=180)
    address = addresses_of(training.pods(admin.client()))[PS]
    admin.kubectl("delete", "pod", PS, "-n", training.namespace, "--wait=false")
    return address


@pytest.mark.usefixtures("lost_address")
def test_peers_resolve_before_anybody_is_ready(
    admin: Access, long_release: Release, reports: dict[str, Report]
) -> None:
    """The training comes first: while the tests look at the stand-ins, it finds its ps again, which takes longest."""
    pods = long_release.pods(admin.client())
    addresses = addresses_of(pods)
    assert set(reports) == {"chief-0", "worker-0", "worker-1", "ps-0"}
    for task, report in reports.items():
        assert set(report.met) == set(reports) - {task}
        for peer in report.peers.values():
            assert addresses[peer.pod] == peer.address
    # All this while no pod was ready, and one had not finished starting.
    assert {status.ready for pod in pods.values() for status in container_statuses(pod)} == {False}
    assert {status.started for status in container_statuses(pods[reports["chief-0"].met["ps-0"]])} == {False}


def test_names_of_the_longest_release_fit_and_are_told_apart(reports: dict[str, Report]) -> None:
    assert len(LONG_NAME) == HELM_LIMIT
    hosts = [host for group in reports["chief-0"].tf_config["cluster"].values() for host in group]
    names = {label for host in hosts for label in host.partition(":")[0].split(".")}
    # Four pods and one Service; each is a DNS label.
    assert len(names) == 5
    assert all(re.fullmatch(r"[a-z][-a-z0-9]{0,62}", name) for name in names)
    # The name that TF_CONFIG gives a task is the name of the pod that answers there.
    config = reports["chief-0"].tf_config["cluster"]
    assert [host.partition(".")[0] for host in config["worker"]] == [
        reports["chief-0"].met["worker-0"],
        reports["chief-0"].met["worker-1"],
    ]


def test_a_whole_release_runs_in_another_cluster_domain(
    own_cluster: Cluster, admin: Access, long_release: Release, nodes: list[str], reports: dict[str, Report]
) -> None:
    assert {pod.spec.nodeName for pod in long_release.pods(admin.client()).values() if pod.spec} == {nodes[-1]}
    for report in reports.values():
        search = next(line for line in report.given["resolver"].splitlines() if line.startswith("search"))
        assert "svc.kubernetes.example" in search.split()
        assert "cluster.local" not in search


def test_pod_that_returns_with_another_address_is_found(
    admin: Access, long_release: Release, reports: dict[str, Report]
) -> None:
    pod = reports["chief-0"].met["worker-1"]
    before = reports["chief-0"].peers["worker-1"].address
    admin.kubectl("delete", "pod", pod, "-n", long_release.namespace, "--wait=false")

    def find_again(client: Client) -> str | None:
        chief = read_report(long_release, reports["ps-0"].met["chief-0"], client)
        found = chief.peers["worker-1"]
        return found.address if found.pod == pod and found.address != before else None

    after = admin.wait_for(find_again, f"another address of {pod}", namespace=long_release.namespace)
    assert after == addresses_of(long_release.pods(admin.client()))[pod]


def test_training_goes_on_with_a_ps_at_another_address(admin: Access, training: Release, lost_address: str) -> None:
    end = training.wait_until_succeeded(CHIEF)

    assert end.step == MAX_STEPS, end
    # The ps holds all weights: the chief lost it, was started again, and did the rest of the steps with the new one.
    assert end.attempt >= 2, end
    assert addresses_of(training.pods(admin.client()))[PS] != lost_address


def test_a_release_may_span_two_cluster_domains(
    own_cluster: Cluster, admin: Access, training: Release, nodes: list[str]
) -> None:
    """Where its ps is, the domain is another one; that it trained, the test above has seen."""
    domains = {}
    for role in ("chief", "ps"):
        pod = f"train-mnist-{role}-0"
        resolver = admin.kubectl("exec", "-n", training.namespace, pod, "--", "cat", "/etc/resolv.conf")
        domains[role] = next(line.split()[-1] for line in resolver.splitlines() if line.startswith("search"))

    assert domains == {"chief": "cluster.local", "ps": "kubernetes.example"}


def test_pods_on_the_host_network_use_the_same_names(admin: Access, namespace: str, nodes: list[str]) -> None:
    """One pod a node, since they take the nodes' ports."""
    admin.kubectl("label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
    image = {"repository": f"{REGISTRY_HOST}/ml/mnist"}
    changes = {"hostNetwork": True, "image": image, "roles": {"worker": {"replicas": 1}}}
    release = plan_stand_ins(admin, namespace, "host", "mnist-classic", changes)
    release.install()

    found = {task_of(report): report for report in wait_for_reports(release, 2).values()}

    pods = release.pods(admin.client())
    assert sorted(str(pod.spec.nodeName) for pod in pods.values() if pod.spec) == nodes
    on_nodes = {name: str(pod.status.hostIP) for name, pod in pods.items() if pod.status}
    assert addresses_of(pods) == on_nodes and len(set(on_nodes.values())) == 2
    assert found["worker-0"].peers["ps-0"].address == on_nodes[found["worker-0"].met["ps-0"]]
