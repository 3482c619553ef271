"""Releases that train into one checkpoint folder at the same time are named to each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_pod, stamp
from trainchart.cluster.checkpoint_folders import (
    find_shared_folders,
    list_claims_to_compare,
    may_share_folder,
    sort_by_folder,
)
from trainchart.cluster.snapshot import Unreadable
from trainchart.cluster.storage_folders import find_storage, list_volumes_of
from trainchart.reports.list_table import find_head
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.text import describe_time

REPORT = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Running", "record")


def train(
    task: str = "chief-0",
    release: str = "exp2",
    *,
    claim: str = "team-data",
    folder: str = "/checkpoints",
    started: float = 300,
    node: str = "node1",
    **mount: Any,
) -> dict[str, Any]:
    """Return a training pod that keeps its checkpoints in a claim, which it mounts at /checkpoints."""
    pod = make_pod(task, release=release, node=node)
    env = [{"name": "TRAINCHART_CHECKPOINTS_DIR", "value": folder}]
    mounts = [{"name": "volume-checkpoints", "mountPath": "/checkpoints", "subPath": "mnist", **mount}]
    pod["spec"]["containers"][0] |= {"env": env, "volumeMounts": mounts}
    pod["spec"]["volumes"] = [{"name": "volume-checkpoints", "persistentVolumeClaim": {"claimName": claim}}]
    if node:
        pod["status"]["startTime"] = stamp(NOW - started)
    return pod


def find(*others: dict[str, Any], own: dict[str, Any] | None = None) -> list[str]:
    own = own or train(release="exp1", started=200)
    return list(find_shared_folders(REPORT, (own,), sort_by_folder((own, *others))))


def test_another_release_in_the_folder_is_named() -> None:
    (remark,) = find(train(), train("worker-0"))
    assert remark == (
        f"shares its checkpoint folder with exp2 since {describe_time(NOW - 200)}: exp2-mnist-chief-0, "
        "exp2-mnist-worker-0 write to claim team-data/mnist as well, and the releases overwrite and remove each "
        "other's checkpoints. Suspend one of them now: trainchart suspend exp1 -n team-a, or exp2. Before you resume "
        "it, give it a folder of its own, which is empty at first: in its values (helm upgrade), set "
        "volumes.checkpoints.subPath to mnist/$(TRAINCHART_RELEASE)"
    )
    assert find_head(remark) == f"shares its checkpoint folder with exp2 since {describe_time(NOW - 200)}"


def test_pods_that_wait_will_share_the_folder() -> None:
    (remark,) = find(train(node=""))
    assert remark.startswith("will share its checkpoint folder with exp2 once both run: exp2-mnist-chief-0 writes to ")
    (remark,) = find(train(node=""), train(release="exp3", started=150))
    assert remark.startswith(f"shares its checkpoint folder with exp2, exp3 since {describe_time(NOW - 150)}: ")


@pytest.mark.parametrize(
    "place",
    [
        {"subPath": "mnist/"},
        {"subPath": "", "folder": "/checkpoints/mnist"},
        {"mountPath": "/data", "folder": "/data"},
    ],
)
def test_one_folder_may_be_mounted_in_several_ways(place: dict[str, Any]) -> None:
    assert len(find(train(**place))) == 1


@pytest.mark.parametrize(
    "place",
    [
        {"claim": "other"},
        {"subPath": "digits"},
        {"folder": "/checkpoints/b"},
        {"subPath": ""},
        {"readOnly": True},
        {"folder": "/elsewhere"},
        {"folder": ""},
    ],
)
def test_pods_of_other_folders_share_nothing(place: dict[str, Any]) -> None:
    assert find(train(**place)) == []


@pytest.mark.parametrize("place", [{"folder": "/checkpoints/$(POD_NAME)"}, {"subPathExpr": "$(POD_NAME)"}])
def test_folders_that_each_pod_names_are_not_compared(place: dict[str, Any]) -> None:
    assert find(train(**place), own=train(release="exp1", **place)) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_write_no_more(phase: str) -> None:
    ended = train()
    ended["status"]["phase"] = phase
    assert find(ended) == []
    own = train(release="exp1")
    own["status"]["phase"] = phase
    assert find(train(), own=own) == []


def test_a_claim_of_another_namespace_is_another() -> None:
    elsewhere = train()
    elsewhere["metadata"]["namespace"] = "team-b"
    assert find(elsewhere) == []


def test_pods_of_the_release_itself_share_its_folder() -> None:
    assert find(train("worker-0", "exp1")) == []
    other = train(release="exp1")
    other["metadata"]["labels"]["app.kubernetes.io/name"] = "digits"
    assert "with exp1/digits since" in find(other)[0]


def test_the_release_that_does_not_own_the_claim_is_to_move() -> None:
    claim = "exp1-mnist-checkpoints"
    (remark,) = find(train(claim=claim), own=train(release="exp1", claim=claim))
    assert "Suspend it now: trainchart suspend exp2 -n team-a. Before" in remark
    claim = "exp2-mnist-checkpoints"
    (remark,) = find(train(claim=claim), own=train(release="exp1", claim=claim))
    assert "Suspend this one now: trainchart suspend exp1 -n team-a. Before" in remark


def test_one_address_of_an_object_store_is_one_folder() -> None:
    own = train(release="exp1", folder="gs://team/mnist/")
    (remark,) = find(train(folder="gs://team/mnist"), own=own)
    assert "writes to gs://team/mnist as well" in remark
    assert remark.endswith("set volumes.checkpoints.uri to gs://team/mnist/$(TRAINCHART_RELEASE)")
    assert find(train(folder="gs://team/digits"), own=own) == []


def test_many_releases_are_named_in_one_remark() -> None:
    (remark,) = find(*(train(release=f"exp{number}") for number in range(2, 10)))
    assert "with exp2, exp3, exp4, exp5, exp6 and 3 more since" in remark
    assert "Suspend all but one of them now: trainchart suspend RELEASE -n team-a" in remark


def test_only_a_claim_by_value_may_be_shared() -> None:
    assert may_share_folder((train(release="exp1"),))
    assert may_share_folder((train(release="exp1", folder="gs://team/mnist"),))
    assert not may_share_folder((train(release="exp1", claim="exp1-mnist-checkpoints"),))
    assert may_share_folder((train(release="exp1", claim="exp1-mnist-checkpoints"),), with_own=True)
    assert not may_share_folder((make_pod("chief-0"),), with_own=True)
    assert not may_share_folder(Unreadable("pods", "forbidden"), with_own=True)


def mount_source(pod: dict[str, Any], **source: Any) -> dict[str, Any]:
    """Let a pod mount a volume that is not a claim, as after a post-renderer."""
    pod["spec"]["volumes"] = [{"name": "volume-checkpoints", **source}]
    return pod


def test_a_folder_of_a_server_is_shared_without_a_claim() -> None:
    own = mount_source(train(release="exp1"), nfs={"server": "10.0.0.9", "path": "/export/team"})
    (remark,) = find(mount_source(train(), nfs={"server": "10.0.0.9", "path": "/export/team/"}), own=own)
    assert "writes to NFS server 10.0.0.9/export/team/mnist as well" in remark
    assert find(mount_source(train(), nfs={"server": "10.0.0.8", "path": "/export/team"}), own=own) == []
    assert find(mount_source(train(), nfs={"server": "10.0.0.9", "path": "/export"}), own=own) == []
    readers = {"server": "10.0.0.9", "path": "/export/team", "readOnly": True}
    assert find(mount_source(train(), nfs=readers), own=own) == []
    assert may_share_folder((own,))
    assert not may_share_folder((mount_source(train(release="exp1"), emptyDir={}),))


def test_a_folder_of_a_node_is_shared_on_that_node() -> None:
    own = mount_source(train(release="exp1", node="node1"), hostPath={"path": "/mnt/disk"})
    (remark,) = find(mount_source(train(node="node1"), hostPath={"path": "/mnt/disk"}), own=own)
    assert "writes to hostPath /mnt/disk/mnist as well" in remark
    assert find(mount_source(train(node="node2"), hostPath={"path": "/mnt/disk"}), own=own) == []
    assert find(mount_source(train(node=""), hostPath={"path": "/mnt/disk"}), own=own) == []


def make_static(claim: str, **source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a claim and its volume."""
    bound = {"metadata": {"name": claim}, "spec": {"volumeName": f"pv-{claim}"}}
    return bound, {"metadata": {"name": f"pv-{claim}"}, "spec": {"storageClassName": "", **source}}


def csi(handle: str, **attributes: str) -> dict[str, Any]:
    return {"driver": "nfs.csi.k8s.io", "volumeHandle": handle, "volumeAttributes": attributes}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"csi": csi("a")}, {"csi": csi("a")}, "nfs.csi.k8s.io volume a/mnist"),
        ({"csi": csi("a")}, {"csi": csi("b")}, ""),
        (
            {"csi": csi("a", server="nas", share="/t")},
            {"csi": csi("b", server="nas", share="/t")},
            "NFS server nas/t/m",
        ),
        ({"csi": csi("a", server="nas", share="/t")}, {"nfs": {"server": "nas", "path": "/t"}}, "NFS server nas/t/m"),
        ({"csi": csi("a", server="nas", share="/t")}, {"csi": csi("a", server="nas", share="/u")}, ""),
        ({"hostPath": {"path": "/mnt"}}, {"hostPath": {"path": "/mnt"}}, "hostPath /mnt/mnist"),
        ({"cephfs": {"monitors": ["a"]}}, {"cephfs": {"monitors": ["a"]}}, ""),
    ],
)
def test_claims_of_one_static_volume_are_one(first: dict[str, Any], second: dict[str, Any], words: str) -> None:
    own, other = train(release="exp1", claim="a"), train(claim="b")
    assert list_claims_to_compare(REPORT, (own,), (own, other)) == ["a", "b"]
    claims, volumes = zip(make_static("a", **first), make_static("b", **second), strict=True)
    assert list_volumes_of(["a", "b"], claims) == ["pv-a", "pv-b"]
    storage = find_storage(claims, volumes)
    found = list(find_shared_folders(REPORT, (own,), sort_by_folder((own, other), storage), storage))
    assert len(found) == bool(words) and all(words in each for each in found)


@pytest.mark.parametrize("claims", [("a", "a"), ("exp1-mnist-checkpoints", "b"), ("a", "exp2-mnist-checkpoints")])
def test_only_claims_that_are_given_are_compared(claims: tuple[str, str]) -> None:
    own, other = train(release="exp1", claim=claims[0]), train(claim=claims[1])
    assert list_claims_to_compare(REPORT, (own,), (own, other)) == []
    unlike = train(release="exp1", claim="a", subPath="x"), train(claim="b", subPath="x", folder="")
    assert list_claims_to_compare(REPORT, unlike[:1], unlike) == []
