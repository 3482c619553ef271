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
from trainchart.cluster.departures import may_end_with_namespace
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Objects, Snapshot, Unreadable
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.text import describe_time
from trainchart.reports.why import why_lines
from trainchart_runtime.running_causes import STORAGE_SILENT

FINALIZER = "billing.example.com/usage-record"
PATCH = """--type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'"""
DEATH = {
    "at": NOW - 300,
    "pod": "exp1-mnist-worker-1",
    "node": "node2",
    "cause": "pod-deleted",
    "action": "the StatefulSet recreates the pod",
}


def look(worker: dict[str, Any], step_at: float = NOW - 5, problems: Any = (), **more: Any) -> Report:
    progress = {"at": step_at, "attempt": 1, "step": 505, "bestStep": 505}
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=tuple(make_pods(worker_1=worker)),
        records=(make_record(make_state("Running", incidents=[DEATH], progress=progress, problems=list(problems))),),
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
    condition["message"] = "kubelet is ready" if ready == "True" else "[container runtime is down]"
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
    assert [each.cause for each in report.problems] == ["evicted-by-client"]
    assert FINALIZER in report.remarks[0]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (
            (make_node("node2", "Unknown"),),
            "its node node2 has been NotReady since 2027-01-15 07:53:20 UTC: container runtime is down (kubectl ",
        ),
        ((make_node("node1"),), "its node node2 is no longer part of the cluster"),
        ((make_node("node2"),), "it has no finalizer; check its volumes and its node node2: kubectl describe pod "),
        (Unreadable("nodes", "forbidden"), "it has no finalizer; check its volumes and its node node2: kubectl "),
    ],
)
def test_node_that_keeps_a_deleted_pod_is_named(nodes: Objects, words: str) -> None:
    (remark,) = look(make_deleted(has_ended=False), nodes=nodes).remarks
    assert f"stuck terminating: {words}" in remark
    (remark,) = look(make_deleted(FINALIZER, has_ended=False), nodes=nodes).remarks
    assert f"; after that, the finalizer {FINALIZER} keeps it" in remark


def test_silent_node_is_named_though_a_taint_is_the_problem() -> None:
    pod = make_deleted(has_ended=False)
    words = "Taint manager: deleting due to NoExecute taint"
    taint = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": words}
    pod["status"]["conditions"] += [{"type": "Ready", "status": "True"}, taint]
    report = look(pod, nodes=(make_node("node2", "False"),))
    assert [each.cause for each in report.problems] == ["evicted-by-taint"]
    assert "node2 has been NotReady since 2027-01-15 07:53:20 UTC: container runtime is down" in " ".join(
        report.remarks
    )
    assert not look(pod, nodes=(make_node("node2"),)).remarks


def test_program_that_outlives_a_shortened_grace_period_is_named() -> None:
    (remark,) = look(make_leaving(since=300, grace=1), nodes=(make_node("node2"),)).remarks
    assert "it has no finalizer; check its volumes and its node node2: kubectl describe pod " in remark
    assert remark.endswith(
        ". If its program still runs there, kubectl exec exp1-mnist-worker-1 -n team-a -c training -- sh -c "
        "'kill -9 -1' ends it now, without saving (kubectl delete with a shorter grace period may not)"
    )


def make_leaving(task: str = "worker-1", *, since: float, grace: int = 1800, has_ended: bool = False) -> dict[str, Any]:
    """A pod that was deleted `since` seconds ago."""
    pod = make_pod(task, node="node2", ended=make_end(None, 143) if has_ended else None)
    deadline = stamp(NOW - since + grace)
    pod["metadata"] |= {"deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
    return pod


def test_program_that_runs_on_in_a_deleted_pod_is_named() -> None:
    (remark,) = look(make_leaving(since=660)).remarks
    assert remark == (
        "the program of exp1-mnist-worker-1 still runs 11 min after its pod was deleted: terminating since "
        f"{describe_time(NOW - 660)}, killed by the kubelet at {describe_time(NOW + 1140)}, when its grace period of "
        "30 min (stopGraceSeconds) is over. Its steps since the last checkpoint are then lost. If it still saves "
        "(trainchart logs exp1 -n team-a --pod worker-1), wait. If it ignores SIGTERM, let it save and exit on "
        "SIGTERM, as programs that use the training library do; kubectl exec exp1-mnist-worker-1 -n team-a -c "
        "training -- sh -c 'kill -9 -1' ends it now, without saving (kubectl delete with a shorter grace period may "
        "not)"
    )


def test_programs_that_run_on_in_deleted_pods_are_named_together() -> None:
    pods = make_pods(worker_0=make_leaving("worker-0", since=700, grace=1200), worker_1=make_leaving(since=660))
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(pods), jobs=(make_job(),))
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    (remark,) = (each for each in remarks if "terminating" in each)
    assert remark.startswith(
        "the programs of exp1-mnist-worker-0, exp1-mnist-worker-1 still run 11 min after their pods"
    )
    assert f"(stopGraceSeconds) is over, the last at {describe_time(NOW + 1140)}. " in remark
    assert "kubectl exec exp1-mnist-worker-0 -n team-a -c training -- sh -c 'kill -9 -1' ends the first now" in remark


@pytest.mark.parametrize(
    ("since", "grace", "has_ended"),
    [(50, 1800, False), (20, 30, False), (660, 1800, True), (1900, 1800, False)],
    ids=["just-deleted", "usual-grace", "ended", "overdue"],
)
def test_pod_that_may_still_save_is_no_slow_end(since: float, grace: int, *, has_ended: bool) -> None:
    remarks = look(make_leaving(since=since, grace=grace, has_ended=has_ended)).remarks
    assert not [each for each in remarks if each.startswith("the program of ")]


@pytest.mark.parametrize("phase", ["Restarting", "Suspended"])
def test_pods_that_have_not_ended_are_not_said_to_save(phase: str) -> None:
    pods = make_pods(worker_1=make_leaving(since=20))
    records = (make_record(make_state(phase)),)
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(pods), records=records, jobs=(make_job(),))
    text = "\n".join(why_lines(diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)))
    assert "4 of its pods have not ended yet (worker-1: SIGTERM was sent, on which programs of the training " in text
    assert "pods save" not in text and "saving" not in text


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


REFUSAL = "pods is forbidden: unable to create new content in namespace team-a because it is being terminated"


def test_words_of_programs_do_not_end_a_namespace() -> None:
    problem = {"subject": "exp1-mnist-worker-1", "node": "node2", "cause": STORAGE_SILENT.name, "message": REFUSAL}
    event = make_event("Pod", "exp1-mnist-worker-1", "Unhealthy", f"probe failed: {REFUSAL}")
    report = look(make_pod("worker-1"), events=(event,), problems=[{**problem, "since": NOW - 60}])
    assert report.problems[0].message == REFUSAL
    assert report.remarks == ()
    assert not may_end_with_namespace(report, Snapshot(NOW, events=(event,)))


def test_namespace_that_remains_is_not_said_to_end() -> None:
    event = make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", REFUSAL)
    assert look(make_pod("worker-1"), events=(event,)).remarks
    assert not look(make_pod("worker-1"), events=(event,), namespaces=({"metadata": {"name": "team-a"}},)).remarks


def test_namespace_that_is_deleted_says_what_keeps_it() -> None:
    event = make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", REFUSAL)
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
