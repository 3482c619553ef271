"""Two releases of one chart in one namespace neither see nor disturb each other, even with names that begin alike.

Their pods run a stand-in for the training program, which introduces itself to its peers by its pod's name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import PersistentVolumeClaim, Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.releases import Release, container_statuses
from tests.cluster.testcluster.stand_in import Report, plan_stand_ins, read_report, wait_for_reports

pytestmark = pytest.mark.cluster

# The second's name begins with the full name of the first's objects.
NAMES = ("exp", "exp-mnist")
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 2222), 2).close()
    print("reached")
except TimeoutError:
    print("no answer")
"""


@pytest.fixture(scope="module")
def releases(admin: Access, module_namespace: str) -> list[Release]:
    changes = {"roles": {"worker": {"replicas": 1}, "evaluator": {"replicas": 0}}}
    releases = [plan_stand_ins(admin, module_namespace, name, "mnist", changes) for name in NAMES]
    for release in releases:
        release.install()
    return releases


@pytest.fixture(scope="module")
def reports(releases: list[Release]) -> dict[str, Mapping[str, Report]]:
    """Release name → pod → what it found."""
    return {release.name: wait_for_reports(release, 3) for release in releases}


def pods_of(release: str) -> dict[str, str]:
    return {task: f"{release}-mnist-{task}" for task in ("chief-0", "worker-0", "ps-0")}


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_meets_the_peers_of_its_own_release(reports: dict[str, Mapping[str, Report]], name: str) -> None:
    own = pods_of(name)
    assert set(reports[name]) == set(own.values())
    for task, pod in own.items():
        assert reports[name][pod].met == {peer: name for peer, name in own.items() if peer != task}
        cluster = reports[name][pod].tf_config["cluster"]
        assert sorted(host for hosts in cluster.values() for host in hosts) == sorted(
            f"{peer}.{name}-mnist:2222" for peer in own.values()
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_folder_belongs_to_one_release(
    admin: Access, releases: list[Release], reports: dict[str, Mapping[str, Report]], name: str
) -> None:
    for report in reports[name].values():
        assert set(report.files) <= set(pods_of(name).values())
    # Whoever was the last to meet its peers has seen the names that all of them left.
    assert {file for report in reports[name].values() for file in report.files} == set(pods_of(name).values())
    claim = admin.client().get(PersistentVolumeClaim, f"{name}-mnist-checkpoints", namespace=releases[0].namespace)
    assert claim.status and claim.status.phase == "Bound"


@pytest.mark.parametrize(("caller", "other"), [NAMES, NAMES[::-1]])
def test_network_policy_shuts_out_pods_of_another_release(
    admin: Access, releases: list[Release], reports: dict[str, Mapping[str, Report]], caller: str, other: str
) -> None:
    def reach(release: str) -> str:
        address = reports[release][f"{release}-mnist-chief-0"].peers["ps-0"].address
        assert ipaddress.ip_address(address)
        pod = f"{caller}-mnist-worker-0"
        return admin.kubectl(
            *("exec", "-n", releases[0].namespace, pod, "--", "python3", "-c", CONNECT, address)
        ).strip()

    assert reach(caller) == "reached"
    assert reach(other) == "no answer"


def test_uninstalling_one_leaves_the_other_alone(
    admin: Access, releases: list[Release], reports: dict[str, Mapping[str, Report]]
) -> None:
    first, second = releases
    before = {name: pod.metadata.uid for name, pod in second.pods(admin.client()).items() if pod.metadata}
    first.uninstall()

    def is_gone(client: Client) -> bool:
        return not first.pods(client)

    admin.wait_for(is_gone, f"the end of {first.name}", namespace=first.namespace)
    client = admin.client()
    for name, uid in before.items():
        pod = client.get(Pod, name, namespace=second.namespace)
        assert pod.metadata and (pod.metadata.uid, pod.metadata.deletionTimestamp) == (uid, None)
        assert [status.restartCount for status in container_statuses(pod)] == [0]
        # A stand-in forgets a peer that is silent for a second, until it answers again.
        admin.wait_for(
            lambda client, name=name: read_report(second, name, client).met == reports[second.name][name].met,
            f"{name} reaches all its peers",
            namespace=second.namespace,
        )
