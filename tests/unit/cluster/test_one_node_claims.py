"""A claim that serves one node or pod is named where pods elsewhere wait for it, whatever the driver says."""

from __future__ import annotations

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_event,
    make_pod,
    make_pods,
    make_sets,
    unschedulable,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey

WAITING = "exp1-mnist-worker-1"
MULTI_ATTACH = "Multi-Attach error for volume pvc-7 Volume is already used by pod(s) exp1-mnist-worker-0"
OF_A_DRIVER = "MountVolume.SetUp failed for volume pvc-7: rpc error: code = FailedPrecondition desc = busy elsewhere"


def look(modes: list[str], *, node: str, reason: str = "", message: str = "") -> list[str]:
    """Return the remarks about the claim tiles, which worker-0 mounts on node1 and worker-1 on `node`."""
    conditions = [] if node else [unschedulable(message)]
    pods = make_pods(worker_1=make_pod("worker-1", node=node, conditions=conditions))
    for pod in pods[1:3]:
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "tiles"}}]
    if reason:
        pods[2]["status"]["containerStatuses"] = []
        pods[2]["status"]["phase"] = "Pending"
    events = (make_event("Pod", WAITING, reason, message),) if reason else ()
    claims = ({"metadata": {"name": "tiles"}, "status": {"accessModes": modes, "phase": "Bound"}},)
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(pods), events=events, claims=claims)
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    return [each for each in remarks if "the claim tiles" in each]


@pytest.mark.parametrize(
    ("reason", "message"), [("FailedAttachVolume", MULTI_ATTACH), ("FailedMount", OF_A_DRIVER)], ids=["attach", "mount"]
)
def test_pods_of_two_nodes_wait_for_a_claim_of_one(reason: str, message: str) -> None:
    (remark,) = look(["ReadWriteOnce"], node="node2", reason=reason, message=message)
    assert remark == (
        "the claim tiles is ReadWriteOnce, which serves one node at a time, but several pods mount it: "
        "exp1-mnist-worker-0 on node1, exp1-mnist-worker-1 on node2. Give the release a claim that is ReadWriteMany, "
        "of a class such as CephFS, or keep its pods on one node"
    )


def test_a_second_pod_waits_for_a_claim_of_one_pod() -> None:
    message = "0/2 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and "
    (remark,) = look(["ReadWriteOncePod"], node="", message=message + "ReadWriteOncePod access mode.")
    assert "serves one pod at a time" in remark and "exp1-mnist-worker-1 on no node" in remark
    assert "let one pod mount it (roles)" in remark


@pytest.mark.parametrize(
    ("modes", "node", "reason"),
    [
        (["ReadWriteOnce"], "node1", "FailedMount"),
        (["ReadWriteOnce", "ReadWriteMany"], "node2", "FailedMount"),
        (["ReadOnlyMany"], "node2", "FailedMount"),
        (["ReadWriteOnce"], "node2", ""),
        ([], "node2", "FailedMount"),
    ],
    ids=["same node", "shared as well", "readers", "nothing waits", "not bound"],
)
def test_other_waits_are_not_blamed_on_the_claim(modes: list[str], node: str, reason: str) -> None:
    assert look(modes, node=node, reason=reason, message=OF_A_DRIVER) == []
