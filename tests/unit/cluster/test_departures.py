"""What is said to keep pods, claims and namespaces that were deleted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_end,
    make_event,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_sets,
    make_state,
    stamp,
    unschedulable,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Objects, Snapshot, Unreadable
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.why import why_lines

FINALIZER = "billing.example.com/usage-record"
PATCH = """--type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"""
DEATH = {
    "at": NOW - 300,
    "pod": "exp1-mnist-worker-1",
    "node": "node2",
    "cause": "pod-deleted",
    "action": "the StatefulSet recreates the pod",
}


def look(worker: dict[str, Any], step_at: float = NOW - 5, **more: Any) -> Report:
    progress = {"at": step_at, "attempt": 1, "step": 505, "bestStep": 505}
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=tuple(make_pods(worker_1=worker)),
        records=(make_record(make_state("Running", incidents=[DEATH], progress=progress)),),
        jobs=(make_job(),),
        **more,
    )
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)


def make_deleted(*finalizers: str, has_ended: bool = True) -> dict[str, Any]:
    pod = make_pod("worker-1", node="node2", ended=make_end(None, 143) if has_ended else None)
    pod["metadata"] |= {"deletionTimestamp": stamp(NOW - 300), "finalizers": list(finalizers)}
    return pod


def make_node(name: str, ready: str = "True") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": stamp(NOW - 400)}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def test_finalizer_that_keeps_an_ended_pod_is_named() -> None:
    (remark,) = look(make_deleted(FINALIZER)).remarks
    assert remark == (
        "exp1-mnist-worker-1 is stuck terminating: all containers have ended, and the finalizer "
        f"{FINALIZER} keeps it: the program that set it must run to finish its work; only if that program is gone "
        f"for good: kubectl patch pod exp1-mnist-worker-1 -n team-a {PATCH}"
    )


def test_finalizer_is_named_though_an_eviction_is_the_problem() -> None:
    pod = make_deleted(FINALIZER)
    pod["status"]["conditions"] += [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    report = look(pod)
    assert [each.cause for each in report.problems] == ["evicted"]
    assert FINALIZER in report.remarks[0]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((make_node("node2", "Unknown"),), "its node node2 is NotReady since 2027-01-15 07:53:20 UTC (kubectl "),
        ((make_node("node1"),), "its node node2 is not part of the cluster any more"),
        ((make_node("node2"),), "it has no finalizer; check its volumes and its node node2: kubectl describe pod "),
        (Unreadable("nodes", "forbidden"), "it has no finalizer; check its volumes and its node node2: kubectl "),
    ],
)
def test_node_that_keeps_a_deleted_pod_is_named(nodes: Objects, words: str) -> None:
    (remark,) = look(make_deleted(has_ended=False), nodes=nodes).remarks
    assert f"stuck terminating: {words}" in remark
    (remark,) = look(make_deleted(FINALIZER, has_ended=False), nodes=nodes).remarks
    assert f"; after that, the finalizer {FINALIZER} keeps it" in remark


def test_death_of_a_pod_that_stays_promises_no_other_yet() -> None:
    lines = why_lines(look(make_deleted(FINALIZER)))
    (death,) = (line for line in lines if "(pod-deleted)" in line)
    assert death.endswith("→ the StatefulSet recreates the pod once this one is gone")
    assert not [line for line in lines if line.startswith("Earlier deaths")]
    lines = why_lines(look(make_pod("worker-1")))
    assert any(line.startswith("Earlier deaths") for line in lines)
    assert any(line.endswith("→ the StatefulSet recreates the pod") for line in lines)


@pytest.mark.parametrize(
    ("finalizers", "node", "words"),
    [
        (["kubernetes.io/pvc-protection"], "node1", "exp1-mnist-worker-1 still uses it (kubernetes.io/pvc-protection)"),
        (["kubernetes.io/pvc-protection"], "", "kubectl describe pvc tiles -n team-a names such pods"),
        ([FINALIZER], "", f"the finalizer {FINALIZER} keeps it"),
    ],
)
def test_claim_that_is_deleted_says_what_keeps_it(finalizers: list[str], node: str, words: str) -> None:
    pod = make_pod("worker-1", node=node, conditions=() if node else [unschedulable()])
    pod["spec"]["volumes"] = [{"name": "tiles", "persistentVolumeClaim": {"claimName": "tiles"}}]
    deleted = {"name": "tiles", "deletionTimestamp": stamp(NOW - 300), "finalizers": finalizers}
    (remark,) = look(pod, claims=({"metadata": deleted}, {"metadata": {"name": "other"}})).remarks
    assert remark.startswith("the claim tiles is ") and words in remark
    assert not look(pod, claims=({"metadata": {"name": "tiles", "finalizers": finalizers}},)).remarks


def test_claim_that_goes_with_its_pod_is_no_remark() -> None:
    pod = make_pod("worker-1", node="node1")
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    name = f"{pod['metadata']['name']}-scratch"
    owner = {"kind": "Pod", "name": pod["metadata"]["name"], "controller": True}
    deleted = {"name": name, "deletionTimestamp": stamp(NOW - 300), "finalizers": ["kubernetes.io/pvc-protection"]}
    assert look(pod, claims=({"metadata": deleted},)).remarks
    assert not look(pod, claims=({"metadata": {**deleted, "ownerReferences": [owner]}},)).remarks


def test_namespace_that_is_deleted_says_what_keeps_it() -> None:
    refusal = "pods is forbidden: unable to create new content in namespace team-a because it is being terminated"
    event = make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", refusal)
    kept = f"Some content in the namespace has finalizers remaining: {FINALIZER} in 1 resource instances"
    conditions = [
        {"type": "NamespaceContentRemaining", "status": "False", "message": "All content successfully removed"},
        {"type": "NamespaceFinalizersRemaining", "status": "True", "message": kept},
    ]
    namespace: dict[str, Any] = {"metadata": {"name": "team-a"}, "status": {"conditions": conditions}}
    assert not look(make_pod("worker-1"), namespaces=(namespace,)).remarks
    namespace["metadata"]["deletionTimestamp"] = stamp(NOW - 10)
    (remark,) = look(make_pod("worker-1"), namespaces=(namespace,)).remarks
    assert remark.startswith("the namespace team-a is being deleted, which cannot be undone: ")
    (remark,) = look(make_pod("worker-1"), events=(event,), namespaces=(namespace,)).remarks
    assert remark.startswith("the namespace team-a is being deleted, which cannot be undone: ")
    assert f"What keeps it: {kept} kubectl describe namespace team-a" in remark
    assert "content successfully" not in remark


def test_set_that_a_finalizer_keeps_is_named() -> None:
    sets = make_sets()
    sets[1]["metadata"] |= {"deletionTimestamp": stamp(NOW - 300), "finalizers": [FINALIZER, "foregroundDeletion"]}
    seen = Snapshot(now=NOW, sets=tuple(sets), pods=tuple(make_pods()))
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    assert remarks[0] == "it is being deleted"
    assert f"the StatefulSet exp1-mnist-worker is stuck terminating: the finalizer {FINALIZER} keeps it" in remarks[1]
