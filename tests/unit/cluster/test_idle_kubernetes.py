"""What `why` says of pods that Kubernetes has not created since its controllers do not act."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_event,
    make_job,
    make_pods,
    make_record,
    make_sets,
    make_state,
    make_verdict,
    stamp,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot, Unreadable
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.why import why_lines
from trainchart_runtime.run.problems import BY_SET

LOST = "exp1-mnist-worker-1"


def look(
    *,
    ago: float = 360,
    phase: str = "Running",
    events: Any = (),
    pods: Any = None,
    replicas: int | None = None,
    status: Any = (),
    incidents: Any = None,
    metadata: Any = (),
    **fields: Any,
) -> Report:
    """Diagnose exp1, whose worker-1 was deleted `ago` seconds ago, and is still counted by its StatefulSet."""
    sets = make_sets(replicas)
    for each in sets:
        number = (
            each["spec"]["replicas"]
            if replicas is None
            else int(each["metadata"]["annotations"]["trainchart/replicas"])
        )
        each["metadata"] |= {"generation": 1}
        each["status"] = {"replicas": number, "readyReplicas": number, "observedGeneration": 1}
    sets[1]["metadata"] |= dict(metadata)
    sets[1]["status"] |= dict(status)
    death = {"at": NOW - ago, "pod": LOST, "node": "node1", "cause": "pod-deleted", "action": BY_SET}
    state = make_state(
        phase,
        incidents=[death] if incidents is None else incidents,
        progress={"at": NOW - ago - 20, "attempt": 1, "step": 470},
        **fields,
    )
    kept = [pod for pod in make_pods() if pod["metadata"]["name"] != LOST]
    seen = Snapshot(
        now=NOW,
        sets=tuple(sets),
        pods=tuple(kept) if pods is None else pods,
        records=(make_record(state),),
        jobs=(make_job(),),
        events=events,
    )
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)


def explain(**fields: Any) -> str:
    return "\n".join(why_lines(look(**fields)))


IDLE = f"Kubernetes has not created {LOST}"


def test_pod_that_is_counted_but_gone_leads_why() -> None:
    text = explain()
    assert f"Not every pod is running yet: worker lacks 1 pod. This may be why:\nnote: {IDLE}" in text
    assert (
        f"note: {IDLE}: the StatefulSet exp1-mnist-worker reports 2 pods in its status, but 1 exists, since "
        f"2027-01-15 07:54:00 UTC (for 6 min). Kubernetes' controllers (kube-controller-manager in the control plane) "
        "are not working, so nothing creates the pod, and other workloads" in text
    )
    assert "administrators must check kube-controller-manager" in text
    assert f"→ {BY_SET}\n" not in text and "→ the StatefulSet has not recreated the pod yet" in text


@pytest.mark.parametrize(
    "fields",
    [
        {"ago": 59},
        {"ago": 80},
        {"pods": tuple(make_pods())},
        {"pods": Unreadable("pods", "forbidden")},
        {"events": Unreadable("events", "forbidden")},
        {"events": (make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", "exceeded quota: team"),)},
        {"replicas": 0, "phase": "Suspended"},
        {"replicas": 0, "phase": "Stopping"},
        {"phase": "Failed", "verdict": make_verdict()},
        {"phase": "Stopping"},
        {"status": {"replicas": 1}},
        {"incidents": []},
    ],
    ids=[
        "just deleted",
        "within its grace period",
        "not gone",
        "pods unreadable",
        "events unreadable",
        "refused",
        "suspended",
        "scaled down",
        "over",
        "stopping",
        "counted right",
        "not known since when",
    ],
)
def test_pod_that_may_yet_come_is_no_idle_kubernetes(fields: dict[str, Any]) -> None:
    assert "Kubernetes does not create" not in explain(**fields)


def change(ago: float) -> dict[str, Any]:
    entry = {"manager": "helm", "time": stamp(NOW - ago), "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    return {"generation": 3, "managedFields": [entry]}


def test_change_that_is_not_observed_is_remarked() -> None:
    text = explain(status={"replicas": 1}, incidents=[], metadata=change(120))
    assert (
        f"{IDLE}: the StatefulSet exp1-mnist-worker was created or changed, and its status does not reflect that"
        in text
    )
    assert "since 2027-01-15 07:58:00 UTC (for 2 min)" in text


def test_set_that_was_never_observed_is_remarked() -> None:
    assert IDLE in explain(status={"replicas": 0, "observedGeneration": 0}, incidents=[])


@pytest.mark.parametrize("metadata", [change(20), {"generation": 3}], ids=["just changed", "changed at unknown time"])
def test_change_of_unknown_or_small_age_is_not_remarked(metadata: dict[str, Any]) -> None:
    assert IDLE not in explain(status={"replicas": 1}, incidents=[], metadata=metadata)
