"""The test cluster's storage behaves as a storage system should: all later tests of volumes rest on that."""

from __future__ import annotations

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Event, PersistentVolume, PersistentVolumeClaim, Pod

from testcluster.access import Access
from testcluster.cluster import Cluster
from testcluster.components import VOLUMES
from testcluster.pods import USER, dump_objects, plan_claim, plan_pod

pytestmark = pytest.mark.cluster

GROUP = 4321
AWAIT_PEER = "until cat /volume/{peer}; do sleep 0.1; done"


@pytest.fixture(autouse=True)
def _only_here(own_cluster: Cluster) -> None:
    """Classes and driver are the test cluster's own."""


def test_pods_of_two_nodes_share_a_volume_that_their_group_owns(admin: Access, namespace: str) -> None:
    command = "umask 0077 && echo here > /volume/{own} && chmod g+r /volume/{own} && " + AWAIT_PEER
    _apply(
        admin,
        namespace,
        plan_claim("data", "shared", "ReadWriteMany"),
        plan_pod("a", command.format(own="a", peer="b"), node="node1", claim="data", fs_group=GROUP),
        plan_pod(
            "b",
            command.format(own="b", peer="a") + "; stat -c '%u %g %A' /volume /volume/a",
            node="node2",
            claim="data",
            fs_group=GROUP,
        ),
    )

    assert _wait_for_log(admin, namespace, "a").splitlines()[-1] == "here"
    assert _wait_for_log(admin, namespace, "b").splitlines()[-2:] == [
        f"0 {GROUP} drwxrwsr-x",
        f"{USER} {GROUP} -rw-r-----",
    ]


def test_without_a_group_a_volume_is_closed_to_users(admin: Access, namespace: str) -> None:
    _apply(
        admin,
        namespace,
        plan_claim("data", "shared", "ReadWriteMany"),
        plan_pod("a", "touch /volume/a 2>&1 || stat -c '%u %g %A' /volume", node="node1", claim="data"),
    )

    log = _wait_for_log(admin, namespace, "a")
    assert "Permission denied" in log
    assert log.splitlines()[-1] == "0 0 drwxr-xr-x"


def test_a_read_only_mount_refuses_writes(admin: Access, namespace: str) -> None:
    _apply(
        admin,
        namespace,
        plan_claim("data", "shared", "ReadWriteMany"),
        plan_pod("a", "touch /volume/a 2>&1 || true", node="node1", claim="data", fs_group=GROUP, is_read_only=True),
    )

    assert "Read-only file system" in _wait_for_log(admin, namespace, "a")


@pytest.mark.parametrize(("storage_class", "is_kept"), [("shared", False), ("shared-retained", True)])
def test_what_becomes_of_a_volume_when_its_claim_goes(
    admin: Access, own_cluster: Cluster, namespace: str, storage_class: str, is_kept: bool
) -> None:
    _apply(
        admin,
        namespace,
        plan_claim("data", storage_class, "ReadWriteMany"),
        plan_pod("a", "echo precious > /volume/model", node="node1", claim="data", fs_group=GROUP),
    )
    _wait_for_log(admin, namespace, "a")
    claim = admin.client().get(PersistentVolumeClaim, "data", namespace=namespace)
    assert claim.spec is not None
    volume = str(claim.spec.volumeName)
    admin.kubectl("delete", "pod/a", "pvc/data", "-n", namespace)

    if is_kept:
        admin.wait_for(lambda client: _phase(client, volume) == "Released", f"{volume} Released", namespace=namespace)
        assert own_cluster.run_inside(["cat", f"{VOLUMES}/{volume}/model"]).stdout == "precious\n"
        admin.kubectl("delete", "pv", volume)
    else:
        admin.wait_for(
            lambda client: volume not in {pv.metadata and pv.metadata.name for pv in client.list(PersistentVolume)},
            f"{volume} gone",
            namespace=namespace,
        )
        assert volume not in own_cluster.run_inside(["ls", "-A", str(VOLUMES)]).stdout


def test_a_disk_is_on_one_node_at_a_time(admin: Access, namespace: str) -> None:
    _apply(
        admin,
        namespace,
        plan_claim("disk", "local-rwo", "ReadWriteOnce"),
        plan_pod("a", "echo 1 > /volume/a; sleep 600", node="node1", claim="disk", fs_group=GROUP),
    )
    admin.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/a", "-n", namespace, "--timeout=60s")
    _apply(admin, namespace, plan_pod("b", "cat /volume/a", node="node2", claim="disk", fs_group=GROUP))

    _wait_for_event(admin, namespace, "b", "the volume is on node1, and ReadWriteOnce allows one node only")
    admin.kubectl("delete", "pod/a", "-n", namespace)
    assert _wait_for_log(admin, namespace, "b") == "1\n"


def test_a_disk_for_many_nodes_is_refused_with_a_reason(admin: Access, namespace: str) -> None:
    _apply(admin, namespace, plan_claim("disk", "local-rwo", "ReadWriteMany"))

    _wait_for_event(admin, namespace, "disk", "ReadWriteOnce,ReadWriteOncePod only, not ReadWriteMany")


def _apply(admin: Access, namespace: str, *objects: dict[str, object]) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*objects))


def _wait_for_log(admin: Access, namespace: str, pod: str) -> str:
    """Return what a pod printed once it has ended well."""

    def has_ended(client: Client) -> bool:
        status = client.get(Pod, pod, namespace=namespace).status
        assert status is None or status.phase != "Failed", pod
        return status is not None and status.phase == "Succeeded"

    admin.wait_for(has_ended, f"the end of pod {pod}", namespace=namespace)
    return admin.kubectl("logs", pod, "-n", namespace)


def _wait_for_event(admin: Access, namespace: str, name: str, text: str) -> None:
    def is_told(client: Client) -> bool:
        events = client.list(Event, namespace=namespace)
        return any(event.involvedObject.name == name and text in str(event.message) for event in events)

    admin.wait_for(is_told, f"an event of {name} that says {text!r}", namespace=namespace)


def _phase(client: Client, volume: str) -> str | None:
    status = client.get(PersistentVolume, volume).status
    return status.phase if status else None
