"""Programs that evict pods are named by the Events that they leave; what Kubernetes itself tells is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, stamp
from trainchart.cluster.evictors import find_evictors, list_evicted
from trainchart.cluster.snapshot import Unreadable
from trainchart.reports.report import Report, TrainingKey
from trainchart_runtime.run.state import FAILED, RUNNING, Incident

POD = "exp1-mnist-worker-0"
BY_DESCHEDULER = "pod eviction from node1 node by sigs.k8s.io/descheduler"


def look(*causes: str, phase: str = RUNNING) -> Report:
    incidents = tuple(Incident(NOW - 100 + number, POD, "node1", cause, "") for number, cause in enumerate(causes))
    return Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, phase, "record", incidents=incidents)


def make_event(reporter: str, reason: str, message: str, at: float = NOW - 101, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": POD}
    told = {"involvedObject": about, "reason": reason, "message": message, "lastTimestamp": stamp(at)}
    return {"type": "Normal", "reportingComponent": reporter, **told, **more}


def test_events_are_read_for_client_evicted_pods() -> None:
    assert list_evicted(look("evicted-by-client", "evicted-by-client")) == (POD,)
    assert list_evicted(look("evicted", "pod-deleted")) == ()
    assert list_evicted(look("evicted-by-client", phase=FAILED)) == ()


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            make_event("sigs.k8s.io/descheduler", "LowNodeUtilization", BY_DESCHEDULER),
            f"sigs.k8s.io/descheduler says that it evicted {POD} (2027-01-15 07:58:19 UTC; LowNodeUtilization: ",
        ),
        (
            make_event("", "ScaleDown", "deleting pod for node scale down", source={"component": "cluster-autoscaler"}),
            f"cluster-autoscaler says that it evicted {POD} (",
        ),
        (make_event("karpenter", "Evicted", "Evicted pod: Underutilized"), f"karpenter says that it evicted {POD} ("),
    ],
)
def test_program_that_tells_of_its_eviction_is_named(event: dict[str, Any], words: str) -> None:
    (remark,) = find_evictors(look("evicted-by-client"), [(event, event)])
    assert remark.startswith(words)
    assert remark.endswith("): ask its owner to exempt training pods")


@pytest.mark.parametrize(
    "event",
    [
        make_event("kubelet", "Killing", "Stopping container training: evicted"),
        make_event("taint-eviction-controller", "TaintManagerEviction", "Marking for deletion Pod"),
        make_event("sigs.k8s.io/descheduler", "LowNodeUtilization", BY_DESCHEDULER, NOW - 4000),
        make_event("kueue-x", "Started", "Admitted by clusterQueue gpus"),
        make_event("", "Evicted", "evicted"),
    ],
    ids=["kubelet", "Kubernetes", "long ago", "of something else", "nobody"],
)
def test_other_events_name_no_evictor(event: dict[str, Any]) -> None:
    assert not list(find_evictors(look("evicted-by-client"), [(event,), Unreadable("events", "forbidden")]))
