"""Which autoscalers are named that have a StatefulSet of a release as their target."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_job, make_pods, make_record, make_sets, make_state
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey

WORKERS = {"kind": "StatefulSet", "name": "exp1-mnist-worker"}


def find_remarks(*autoscalers: dict[str, Any]) -> tuple[str, ...]:
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=tuple(make_pods()),
        records=(make_record(make_state("Running")),),
        jobs=(make_job(),),
        autoscalers=autoscalers,
    )
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks


def make_scaler(least: int = 1, most: int = 1, desired: int = 1, **target: str) -> dict[str, Any]:
    spec = {"scaleTargetRef": WORKERS | target, "minReplicas": least, "maxReplicas": most}
    return {"metadata": {"name": "cost-saver"}, "spec": spec, "status": {"desiredReplicas": desired}}


def test_autoscaler_of_a_set_is_named_with_the_command() -> None:
    (remark,) = find_remarks(make_scaler())
    assert remark.startswith("the HorizontalPodAutoscaler cost-saver scales exp1-mnist-worker: to 1 pods, but this ")
    assert remark.endswith(
        "Delete it (kubectl delete hpa cost-saver -n team-a), or remove the StatefulSet from its scaleTargetRef"
    )
    (remark,) = find_remarks(make_scaler(1, 10, 2))
    assert " scales exp1-mnist-worker: to between 1 and 10 pods, but this release wants 2; the run controller" in remark


@pytest.mark.parametrize(
    "scaler", [make_scaler(2, 2, 2), make_scaler(name="exp2-mnist-worker"), make_scaler(kind="Deployment")]
)
def test_autoscaler_that_changes_no_number_of_pods_is_not_named(scaler: dict[str, Any]) -> None:
    assert not find_remarks(scaler)


def test_what_made_the_autoscaler_is_what_must_go() -> None:
    scaler = make_scaler()
    owner = {"kind": "ScaledObject", "name": "saver", "controller": True}
    scaler["metadata"] = {"name": "keda-hpa-saver", "ownerReferences": [owner]}
    (remark,) = find_remarks(scaler)
    assert "the HorizontalPodAutoscaler keda-hpa-saver, which the ScaledObject saver created, scales " in remark
    assert "Delete it (kubectl delete scaledobject saver -n team-a)" in remark


@pytest.mark.parametrize(("mode", "is_told"), [("Recreate", True), ("", True), ("Off", False), ("Initial", False)])
def test_vertical_autoscaler_that_evicts_pods_is_named(mode: str, is_told: bool) -> None:
    spec = {"targetRef": WORKERS, "updatePolicy": {"updateMode": mode}}
    remarks = find_remarks({"metadata": {"name": "sizes"}, "spec": spec})
    assert [each.partition(" to give")[0] for each in remarks] == [
        "the VerticalPodAutoscaler sizes evicts pods of exp1-mnist-worker"
    ] * is_told
    assert all("kubectl delete vpa sizes -n team-a" in each for each in remarks)
