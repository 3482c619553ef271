"""Claims that name a volume which they do not get."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_pod, make_pods, make_sets, unschedulable
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Objects, Snapshot, Unreadable
from trainchart.reports.report import TrainingKey

UNBOUND = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
OWN = {"namespace": NAMESPACE, "name": "ckpt", "uid": "u-2"}


def find_remarks(volumes: Objects, phase: str = "Pending") -> list[str]:
    waits = make_pod("worker-1", node="", conditions=[unschedulable(UNBOUND)])
    waits["spec"]["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "ckpt"}}]
    claim = {"metadata": OWN, "spec": {"volumeName": "pv-1"}, "status": {"phase": phase}}
    seen = Snapshot(
        now=NOW, sets=tuple(make_sets()), pods=tuple(make_pods(worker_1=waits)), claims=(claim,), volumes=volumes
    )
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    return [each for each in remarks if "pv-1" in each]


def make_volume(phase: str, **owner: Any) -> dict[str, Any]:
    return {"metadata": {"name": "pv-1"}, "spec": {"claimRef": owner} if owner else {}, "status": {"phase": phase}}


def test_released_volume_is_named_with_how_to_free_it() -> None:
    (remark,) = find_remarks((make_volume("Released", **{**OWN, "uid": "u-1"}),))
    assert remark.startswith(
        "the claim ckpt asks for the volume pv-1, which is Released: it still belongs to the claim "
    )
    assert remark.endswith("""kubectl patch pv pv-1 --type=json -p '[{"op":"remove","path":"/spec/claimRef"}]'""")


def test_volume_of_another_claim_is_named() -> None:
    (remark,) = find_remarks((make_volume("Bound", namespace="team-b", name="data", uid="u-9"),))
    assert "which belongs to the claim team-b/data: use that claim, or name another volume" in remark


@pytest.mark.parametrize(
    ("phase", "words"),
    [("Pending", "asks for the volume pv-1, which does not exist"), ("Lost", "of the claim ckpt no longer exists")],
)
def test_missing_volume_is_named(phase: str, words: str) -> None:
    (remark,) = find_remarks((), phase)
    assert words in remark


@pytest.mark.parametrize(
    ("volumes", "phase"),
    [
        ((make_volume("Available"),), "Pending"),
        ((make_volume("Available", namespace=NAMESPACE, name="ckpt"),), "Pending"),
        ((make_volume("Bound", **OWN),), "Bound"),
        (Unreadable("persistentvolumes", "forbidden"), "Pending"),
    ],
)
def test_volume_that_is_its_own_or_unknown_is_not_named(volumes: Objects, phase: str) -> None:
    assert find_remarks(volumes, phase) == []
