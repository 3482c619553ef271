"""Which nodes are named on which alone a waiting pod can run: closed, gone, or without room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_controller_pod,
    make_job,
    make_pod,
    make_pods,
    make_sets,
    stamp,
    unschedulable,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot, Unreadable
from trainchart.reports.report import TrainingKey

TIED = "1 node(s) didn't match PersistentVolume's node affinity"
CORDONED = f"0/2 nodes are available: {TIED}, 1 node(s) were unschedulable."
FULL = f"0/2 nodes are available: {TIED}, 1 Insufficient cpu."
CLAIM = {"metadata": {"name": "ckpt"}, "spec": {"volumeName": "pv-1"}}
POD = "exp1-mnist-worker-1"


def make_volume(*nodes: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": "pv-1"}, "spec": {"nodeAffinity": affinity} if nodes else {}}


def make_node(name: str, *, ready: str = "True", **spec: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": stamp(NOW - 400)}
    labels = {"kubernetes.io/hostname": name, "pool": "a100" if name == "node1" else "cpu"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"conditions": [condition]}}


def find_remarks(message: str, *nodes: dict[str, Any], spec: Any = None, volume: Any = None, **more: Any) -> list[str]:
    waits = make_pod("worker-1", node="", conditions=[unschedulable(message)])
    waits["spec"] |= spec or {}
    waits["spec"]["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "ckpt"}}]
    volumes = (volume or make_volume("node1"),)
    known = {"claims": (CLAIM,), "volumes": volumes, "nodes": nodes, **more}
    sets = make_sets()
    sets[1]["spec"]["template"]["spec"] |= spec or {}
    seen = Snapshot(now=NOW, sets=tuple(sets), pods=tuple(make_pods(worker_1=waits)), **known)
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    return [each for each in remarks if POD in each and "(nodeSelector)" not in each]


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (make_node("node1", unschedulable=True), "node1 is cordoned (kubectl uncordon node1)"),
        (
            make_node("node1", ready="Unknown"),
            "node1 has been NotReady since 2027-01-15 07:53:20 UTC (kubectl describe node node1)",
        ),
        (
            make_node("node1", taints=[{"key": "repair", "value": "disk", "effect": "NoSchedule"}]),
            "node1 has the taint repair=disk:NoSchedule, which the pod does not tolerate (kubectl taint nodes node1 "
            "repair:NoSchedule- removes it; or give the pod a toleration)",
        ),
        (
            make_node("node1", taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]),
            "node1 has the taint node.kubernetes.io/disk-pressure:NoSchedule, which the pod does not tolerate (kubectl "
            "describe node node1 shows why)",
        ),
    ],
)
def test_closed_node_that_alone_reaches_a_volume_is_named(node: dict[str, Any], state: str) -> None:
    assert find_remarks(CORDONED, node, make_node("node2")) == [f"{POD} can run only on node1 (claim ckpt): {state}"]


@pytest.mark.parametrize("toleration", [{"operator": "Exists"}, {"key": "repair", "value": "disk"}])
def test_tolerated_taint_closes_no_node(toleration: dict[str, str]) -> None:
    node = make_node("node1", taints=[{"key": "repair", "value": "disk", "effect": "NoSchedule"}])
    (remark,) = find_remarks(FULL, node, make_node("node2"), spec={"tolerations": [toleration]})
    assert "can be reached from node1 only, and these have no room: free what the pod needs there" in remark


def test_closed_nodes_that_a_selector_asks_for_are_named() -> None:
    message = "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 were unschedulable."
    nodes = make_node("node1", unschedulable=True), make_node("node2")
    closed = "node1 is cordoned (kubectl uncordon node1)"
    volume = make_volume()
    told = find_remarks(message, *nodes, spec={"nodeSelector": {"pool": "a100"}}, volume=volume)
    assert told == [f"{POD} can run only on node1 (nodeSelector pool=a100): {closed}"]
    told = find_remarks("0/1 nodes are available: 1 node(s) were unschedulable.", nodes[0], volume=volume)
    assert told == [f"{POD} cannot run on any node now: {closed}"]
    assert not find_remarks(message, *nodes, volume=volume)


def test_pods_that_wait_for_the_same_nodes_are_named_once() -> None:
    waits = {}
    for task in ("worker-0", "worker-1"):
        pod = make_pod(task, node="", conditions=[unschedulable("0/2 nodes are available: 1 were unschedulable.")])
        pod["spec"]["nodeSelector"] = {"pool": "a100"}
        waits[task.replace("-", "_")] = pod
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=tuple(make_pods(**waits)),
        nodes=(make_node("node1", unschedulable=True), make_node("node2")),
    )
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    words = "can run only on node1 (nodeSelector pool=a100): node1 is cordoned (kubectl uncordon node1)"
    assert [each for each in remarks if words in each] == [f"exp1-mnist-worker-0, {POD} {words}"]


def test_some_closed_nodes_are_named_beside_those_without_room() -> None:
    nodes = make_node("node1", unschedulable=True), make_node("node2")
    (remark,) = find_remarks(FULL, *nodes, volume=make_volume("node1", "node2"))
    assert "from node1, node2 only, and these have no room or are closed: node1 is cordoned (kubectl uncordon" in remark


def test_volume_on_a_node_that_is_gone_is_named() -> None:
    message = f"0/2 nodes are available: 2 {TIED[2:]}."
    (remark,) = find_remarks(message, make_node("node2"), make_node("node3"))
    assert f"no node reaches the volumes of {POD} (claim ckpt: kubernetes.io/hostname In node1): " in remark


@pytest.mark.parametrize("hidden", ["nodes", "volumes", "claims"])
def test_without_the_right_to_see_nodes_a_closed_one_is_possible(hidden: str) -> None:
    more: dict[str, Any] = {"nodes": (make_node("node1", unschedulable=True),), hidden: Unreadable(hidden, "forbidden")}
    (remark,) = find_remarks(CORDONED, **more)
    assert "are closed or have no room: kubectl get nodes shows which is cordoned (kubectl uncordon NODE)" in remark
    (remark,) = find_remarks(FULL, **more)
    assert "can be reached from some nodes only, and these have no room: free what" in remark


def test_only_node_that_fits_the_controller_is_named() -> None:
    words = "0/2 nodes are available: 2 had untolerated taint"
    waits = make_controller_pod()
    waits["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "exp1-mnist-controller-1", "controller": True}]
    waits["spec"] = {"containers": [{"name": "controller"}], "nodeSelector": {"kubernetes.io/hostname": "node1"}}
    waits["status"] = {"phase": "Pending", "conditions": [unschedulable(words)]}
    nodes = (make_node("node1", ready="False"), make_node("node2"))
    pods, jobs = (*make_pods(), waits), (make_job(ready=0),)
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=pods, jobs=jobs, nodes=nodes, claims=())
    report = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)
    begin = f"{waits['metadata']['name']} can run only on node1 (nodeSelector kubernetes.io/hostname=node1): node1 has"
    assert any(each.startswith(begin) for each in report.remarks)
