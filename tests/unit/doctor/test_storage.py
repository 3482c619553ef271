"""Whether the claims of a release can be bound: by StorageClass, driver, access mode, and what is there already."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.doctor.provisioners import PROVISIONERS, find_provisioner
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING
from trainchart.doctor.storage import Need, check_claims, find_needs
from trainchart.helm.rendering import Manifest, Rendering

VERSION = (1, 36)


def make_own(storage_class: str, count: int = 2) -> Rendering:
    """Return pods that each have a claim of their own."""
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}}
    spec = {"volumes": [{"name": "volume-scratch", "ephemeral": {"volumeClaimTemplate": template}}]}
    documents = (
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {"replicas": count, "template": {"spec": spec}},
        }
        for name in ("worker", "ps")
    )
    return Rendering("r", "n", tuple(Manifest("s.yaml", each) for each in documents), {})


def make_need(mode: str = "ReadWriteMany", storage_class: str | None = None, *, writes: bool = True) -> Need:
    spec: dict[str, Any] = {"accessModes": [mode]}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return Need("exp-checkpoints", 3, writes, {"metadata": {"name": "exp-checkpoints"}, "spec": spec})


def make_class(name: str, provisioner: str, *, is_default: bool = False, created: str = "") -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": created}
    return {"metadata": metadata, "provisioner": provisioner}


def make_claim(*modes: str, **more: Any) -> dict[str, Any]:
    status = {"phase": "Bound", "accessModes": list(modes), "capacity": {"storage": "5Gi"}}
    return {"metadata": {"name": "exp-checkpoints"}, "status": status, **more}


CASES = [
    (make_need(), [], FAILED, "the cluster has no default StorageClass, and the claim exp-checkpoints asks for it"),
    (make_need(storage_class="ceph"), [], FAILED, "there is no StorageClass ceph"),
    (
        make_need(),
        [make_class("nfs", "nfs.csi.k8s.io", is_default=True)],
        OK,
        "comes from nfs (NFS CSI), ReadWriteMany",
    ),
    (
        make_need(storage_class="x"),
        [make_class("x", "rook.rbd.csi.ceph.com")],
        FAILED,
        "Ceph RBD CSI cannot be ReadWriteMany",
    ),
    (make_need("ReadWriteOnce", "x"), [make_class("x", "rbd.csi.ceph.com")], OK, "Ceph RBD CSI"),
    (
        make_need(storage_class="x"),
        [make_class("x", "kubernetes.io/glusterfs")],
        FAILED,
        "1.26 has removed in-tree GlusterFS",
    ),
    (make_need(storage_class="x"), [make_class("x", "s3.csi.aws.com")], WARNING, "a bucket is not a file system"),
    (make_need(storage_class="x", writes=False), [make_class("x", "s3.csi.aws.com")], OK, "Mountpoint"),
    (make_need(storage_class="x"), [make_class("x", "kubernetes.io/no-provisioner")], WARNING, "creates no volumes"),
    (make_need(storage_class="x"), [make_class("x", "of.our/own")], OK, "comes from x (of.our/own)"),
    (make_need(storage_class=""), [], WARNING, "names no StorageClass"),
]


@pytest.mark.parametrize(("need", "classes", "outcome", "words"), CASES)
def test_a_claim_is_judged_by_its_class(need: Need, classes: list[Any], outcome: str, words: str) -> None:
    (found,) = check_claims([need], [], classes, VERSION, is_kept_used=False)
    assert found.outcome == outcome
    assert words in found.message
    assert found.subject == "exp-checkpoints"
    assert found.remedy or outcome != FAILED


def test_of_two_default_classes_the_newest_counts() -> None:
    old = make_class("old", "rbd.csi.ceph.com", is_default=True, created="2025-01-01T00:00:00Z")
    new = make_class("new", "cephfs.csi.ceph.com", is_default=True, created="2026-01-01T00:00:00Z")
    (found,) = check_claims([make_need()], [], [new, old], VERSION, is_kept_used=False)
    assert "comes from new" in found.message


@pytest.mark.parametrize(
    ("claim", "outcome", "words"),
    [
        (make_claim("ReadWriteMany"), OK, "bound: ReadWriteMany, 5Gi"),
        (make_claim("ReadWriteOnce"), FAILED, "3 pods mount the claim exp-checkpoints, which is ReadWriteOnce"),
        (make_claim("ReadOnlyMany"), FAILED, "is ReadOnlyMany, but pods must write to it"),
        (make_claim("ReadWriteMany", status={"phase": "Lost"}), FAILED, "has lost its volume"),
        (make_claim(metadata={"name": "exp-checkpoints", "deletionTimestamp": "now"}), FAILED, "is being deleted"),
    ],
)
def test_an_existing_claim_is_judged_by_its_state(claim: dict[str, Any], outcome: str, words: str) -> None:
    (found,) = check_claims([Need("exp-checkpoints", 3, True, None)], [claim], [], VERSION, is_kept_used=False)
    assert found.outcome == outcome
    assert words in found.message


def test_a_claim_that_must_exist_is_missing() -> None:
    (found,) = check_claims([Need("team-data", 3, False, None)], [], [], VERSION, is_kept_used=False)
    assert (found.outcome, found.message) == (
        FAILED,
        "the claim team-data does not exist, and the chart does not create it",
    )


def test_a_claim_of_an_earlier_release_is_refused_or_taken_over() -> None:
    (found,) = check_claims([make_need()], [make_claim("ReadWriteMany")], [], VERSION, is_kept_used=False)
    assert (found.outcome, found.message) == (
        FAILED,
        "an earlier release has left the claim exp-checkpoints, so an installation is refused",
    )
    assert "run.resume=latest" in found.remedy
    (found,) = check_claims([make_need()], [make_claim("ReadWriteMany")], [], VERSION, is_kept_used=True)
    assert found.outcome == OK


@pytest.mark.parametrize(
    ("classes", "outcome"), [([], FAILED), ([make_class("slow", "a/b")], WARNING), (None, WARNING)]
)
def test_a_claim_that_is_not_bound_is_no_success(classes: Any, outcome: str) -> None:
    claim = make_claim(spec={"storageClassName": "slow", "accessModes": ["ReadWriteMany"]}, status={"phase": "Pending"})
    need = Need("exp-checkpoints", 3, True, None)
    (found,) = check_claims([need], [claim], classes, VERSION, is_kept_used=False)
    assert found.outcome == outcome


def test_a_class_that_may_not_be_read_is_unknown() -> None:
    (found,) = check_claims([make_need()], [], None, VERSION, is_kept_used=False)
    assert found.outcome == UNKNOWN


def test_drivers_with_a_prefix_are_known() -> None:
    assert find_provisioner("openshift-storage.cephfs.csi.ceph.com") == PROVISIONERS["cephfs.csi.ceph.com"]
    assert find_provisioner("notcephfs.csi.ceph.com") is None


def test_needs_are_what_pods_mount() -> None:
    def stateful_set(name: str, count: int, *, read_only: bool) -> Manifest:
        mount = {"name": "data", "mountPath": "/data", "readOnly": read_only}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "team-data"}}
        spec = {"containers": [{"name": "training", "volumeMounts": [mount]}], "volumes": [volume]}
        document = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}}
        return Manifest("s.yaml", {**document, "spec": {"replicas": count, "template": {"spec": spec}}})

    reader, writer = stateful_set("a", 2, read_only=True), stateful_set("b", 1, read_only=False)
    assert find_needs(Rendering("r", "n", (reader,), {})) == (Need("team-data", 2, False, None),)
    assert find_needs(Rendering("r", "n", (reader, writer), {})) == (Need("team-data", 3, True, None),)


def test_claims_of_each_pod_are_judged_by_their_class() -> None:
    (need,) = find_needs(make_own("block"))
    assert (need.claim, need.pods, need.own_of_pods) == ("volume-scratch of each pod", 4, "volume-scratch")
    (found,) = check_claims([need], [], [make_class("block", "rbd.csi.ceph.com")], VERSION, is_kept_used=False)
    assert found.outcome == OK
    assert found.message == "the claim volume-scratch of each pod comes from block (Ceph RBD CSI), ReadWriteOnce"
    (found,) = check_claims([need], [], [], VERSION, is_kept_used=False)
    assert found.outcome == FAILED and "there is no StorageClass block" in found.message


@pytest.mark.parametrize(("is_on_one_node", "outcome"), [(True, OK), (False, FAILED)])
def test_pods_of_one_node_share_a_claim_of_one_node(*, is_on_one_node: bool, outcome: str) -> None:
    need = Need("exp-checkpoints", 3, True, None, is_on_one_node)
    (found,) = check_claims([need], [make_claim("ReadWriteOnce")], [], VERSION, is_kept_used=False)
    assert found.outcome == outcome
    (found,) = check_claims([need], [make_claim("ReadWriteOncePod")], [], VERSION, is_kept_used=False)
    assert found.outcome == FAILED
