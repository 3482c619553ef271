"""The test cluster's storage behaves as a storage system should: all later tests of volumes rest on that."""

from __future__ import annotations

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Event, PersistentVolume, PersistentVolumeClaim

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.components import VOLUMES
from tests.cluster.testcluster.pods import USER, dump_objects, plan_claim, plan_pod

pytestmark = pytest.mark.cluster

GROUP = 4321
AWAIT_PEER = "until cat /volume/{peer}; do sleep 0.1; done"


@pytest.fixture(scope="module")
def storage(admin: Access, lasting_cluster: Cluster, module_namespace: str) -> str:
    """A namespace with every pod that the tests look at, started side by side; each has a volume, most their own."""
    # What the other sees has its rights already.
    write = "cd /volume && umask 0077 && echo here > .{own} && chmod g+r .{own} && mv .{own} {own} && " + AWAIT_PEER
    list_both = "; stat -c '%u %g %A' /volume /volume/a"
    pods = (
        plan_pod("a", write.format(own="a", peer="b"), node="node1", claim="both", fs_group=GROUP),
        plan_pod("b", write.format(own="b", peer="a") + list_both, node="node2", claim="both", fs_group=GROUP),
        plan_pod("closed", "touch /volume/a 2>&1 || stat -c '%u %g %A' /volume", node="node1", claim="closed"),
        plan_pod(
            "reader", "touch /volume/a 2>&1 || true", node="node1", claim="read", fs_group=GROUP, is_read_only=True
        ),
        plan_pod("loses", "echo precious > /volume/model", node="node1", claim="deleted", fs_group=GROUP),
        plan_pod("keeps", "echo precious > /volume/model", node="node1", claim="retained", fs_group=GROUP),
        plan_pod("holds", "echo 1 > /volume/a; sleep 600", node="node1", claim="disk", fs_group=GROUP),
    )
    claims = [plan_claim(name, "shared", "ReadWriteMany") for name in ("both", "closed", "read", "deleted")]
    claims += [
        plan_claim("retained", "shared-retained", "ReadWriteMany"),
        plan_claim("disk", "local-rwo", "ReadWriteOnce"),
        plan_claim("disk-for-many", "local-rwo", "ReadWriteMany"),
    ]
    _apply(admin, module_namespace, *claims, *pods)
    return module_namespace


def test_pods_of_two_nodes_share_a_volume_that_their_group_owns(admin: Access, storage: str) -> None:
    assert admin.wait_for_log("a", namespace=storage).splitlines()[-1] == "here"
    assert admin.wait_for_log("b", namespace=storage).splitlines()[-2:] == [
        f"0 {GROUP} drwxrwsr-x",
        f"{USER} {GROUP} -rw-r-----",
    ]


def test_without_a_group_a_volume_is_closed_to_users(admin: Access, storage: str) -> None:
    log = admin.wait_for_log("closed", namespace=storage)
    assert "Permission denied" in log
    assert log.splitlines()[-1] == "0 0 drwxr-xr-x"


def test_a_read_only_mount_refuses_writes(admin: Access, storage: str) -> None:
    assert "Read-only file system" in admin.wait_for_log("reader", namespace=storage)


@pytest.mark.parametrize(("pod", "name", "is_kept"), [("loses", "deleted", False), ("keeps", "retained", True)])
def test_what_becomes_of_a_volume_when_its_claim_goes(
    admin: Access, own_cluster: Cluster, storage: str, pod: str, name: str, is_kept: bool
) -> None:
    admin.wait_for_log(pod, namespace=storage)
    claim = admin.client().get(PersistentVolumeClaim, name, namespace=storage)
    assert claim.spec is not None
    volume = str(claim.spec.volumeName)
    admin.kubectl("delete", f"pod/{pod}", f"pvc/{name}", "-n", storage)

    if is_kept:
        admin.wait_for(lambda client: _phase(client, volume) == "Released", f"{volume} Released", namespace=storage)
        assert own_cluster.run_inside(["cat", f"{VOLUMES}/{volume}/model"]).stdout == "precious\n"
        admin.kubectl("delete", "pv", volume)
    else:
        admin.wait_for(
            lambda client: volume not in {pv.metadata and pv.metadata.name for pv in client.list(PersistentVolume)},
            f"{volume} gone",
            namespace=storage,
        )
        assert volume not in own_cluster.run_inside(["ls", "-A", str(VOLUMES)]).stdout


def test_a_disk_is_on_one_node_at_a_time(admin: Access, storage: str) -> None:
    admin.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/holds", "-n", storage, "--timeout=60s")
    _apply(admin, storage, plan_pod("waits", "cat /volume/a", node="node2", claim="disk", fs_group=GROUP))

    _wait_for_event(admin, storage, "waits", "the volume is on node1, and ReadWriteOnce allows one node only")
    admin.kubectl("delete", "pod/holds", "-n", storage)
    assert admin.wait_for_log("waits", namespace=storage) == "1\n"


def test_a_disk_for_many_nodes_is_refused_with_a_reason(admin: Access, storage: str) -> None:
    _wait_for_event(admin, storage, "disk-for-many", "ReadWriteOnce,ReadWriteOncePod only, not ReadWriteMany")


def _apply(admin: Access, namespace: str, *objects: dict[str, object]) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*objects))


def _wait_for_event(admin: Access, namespace: str, name: str, text: str) -> None:
    def is_told(client: Client) -> bool:
        events = client.list(Event, namespace=namespace)
        return any(event.involvedObject.name == name and text in str(event.message) for event in events)

    admin.wait_for(is_told, f"an event of {name} that says {text!r}", namespace=namespace)


def _phase(client: Client, volume: str) -> str | None:
    status = client.get(PersistentVolume, volume).status
    return status.phase if status else None
