"""Sorting what was seen of a cluster by training: in a time that grows with what was seen, not with its square."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NOW,
    make_controller_pod,
    make_event,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_set,
    make_sets,
    make_state,
    make_verdict,
)
from trainchart.cluster import snapshot
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot, Unreadable, find_trainings, leave_out_damaged

RELEASES = 100


def test_each_object_is_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    whole = snapshot._key
    monkeypatch.setattr(snapshot, "_key", lambda each: (calls.append(each), whole(each))[1])
    releases = [f"exp-{number}" for number in range(RELEASES)]
    seen = Snapshot(
        NOW,
        sets=tuple(make_set("worker", release=each) for each in releases),
        pods=tuple(make_pod("worker-0", release=each) for each in releases),
    )
    found = find_trainings(seen)
    assert [(len(each.sets), len(each.pods)) for each in found.values()] == [(1, 1)] * RELEASES
    assert len(calls) <= 4 * 2 * RELEASES


def test_what_could_not_be_seen_is_unknown_of_each_training() -> None:
    pods = Unreadable("pods", "forbidden")
    (found,) = find_trainings(Snapshot(NOW, sets=(make_set("worker"),), pods=pods)).values()
    assert found.pods == pods
    assert found.jobs == ()


def make_stating_job() -> dict[str, Any]:
    variable = {"name": "TRAINCHART_STATE_NAME", "value": "exp1-mnist-state"}
    return {**make_job("Failed"), "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [variable]}]}}}}


@pytest.mark.parametrize("jobs", [(make_stating_job(),), (make_job("Failed"),), ()])
def test_another_config_map_does_not_hide_the_record(jobs: tuple[dict[str, Any], ...]) -> None:
    own = make_record(make_state("Failed", verdict=make_verdict()))
    forged = make_record(make_state("Running"))
    forged["metadata"]["name"] = "zz-state"
    ((key, found),) = find_trainings(Snapshot(NOW, sets=tuple(make_sets(0)), records=(own, forged), jobs=jobs)).items()
    assert found.records == (own,)
    report = diagnose(key, found)
    assert (report.phase, report.is_over) == ("Failed", True)


def test_another_config_map_is_not_the_deleted_record() -> None:
    forged = make_record(make_state("Succeeded", verdict=make_verdict("Succeeded")))
    forged["metadata"]["name"] = "zz-state"
    seen = Snapshot(NOW, sets=tuple(make_sets()), records=(forged,), jobs=(make_stating_job(),))
    (found,) = find_trainings(seen).values()
    assert found.records == ()


DAMAGE: list[tuple[str, Any]] = [
    ("spec", "x"),
    ("spec.containers", {"name": "training"}),
    ("spec.containers[0]", None),
    ("spec.containers[0].env", 3),
    ("spec.containers[0].resources.limits", 2.5),
    ("status", []),
    ("status.containerStatuses[0]", "NaN"),
    ("status.conditions", [["Ready"]]),
    ("status.phase", {}),
    ("metadata.labels.a", 1),
    ("metadata.name", None),
]


def put(each: Any, path: str, value: Any) -> None:
    *places, last = path.replace("[0]", ".0").split(".")
    for place in places:
        each = each[int(place) if isinstance(each, list) else place]
    each[int(last) if isinstance(each, list) else last] = value


@pytest.mark.parametrize(("field", "value"), DAMAGE, ids=[field for field, _ in DAMAGE])
def test_a_damaged_pod_is_left_out_and_named(field: str, value: Any) -> None:
    pods = make_pods()
    name = pods[0]["metadata"]["name"]
    put(pods[0], field, value)
    seen = leave_out_damaged(Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(pods)))
    ((key, own),) = find_trainings(seen).items()
    report = diagnose(key, own)
    assert {pod.name for pod in report.pods} == {pod["metadata"]["name"] for pod in pods[1:]}
    (unknown,) = report.unknown
    assert unknown.startswith(f"left out pods/{'' if field == 'metadata.name' else name}, whose field {field}")


@pytest.mark.parametrize("look", ["sets", "records", "jobs", "events"])
@pytest.mark.parametrize("metadata", [None, "x", [], {}, {"name": 3}, {"name": "a", "labels": []}])
def test_a_damaged_object_hides_no_other(look: str, metadata: Any) -> None:
    damaged = (*({"metadata": metadata},) * 7,)
    seen = leave_out_damaged(Snapshot(NOW, **{"sets": tuple(make_sets()), look: (*damaged, *make_sets())}))
    ((key, own),) = find_trainings(seen).items()
    unknown = diagnose(key, own).unknown
    assert len(unknown) == 6
    assert unknown[-1] == "left out 2 more damaged objects"


def test_damage_is_reported_for_its_own_training_only() -> None:
    damaged = make_pod("worker-0", release="b") | {"status": "x"}
    sets = (make_set("worker", release="a"), make_set("worker", release="b"))
    found = find_trainings(leave_out_damaged(Snapshot(NOW, sets=sets, pods=(damaged,))))
    assert {key.release: len(own.damaged) for key, own in found.items()} == {"a": 0, "b": 1}


def test_objects_of_a_real_kind_are_not_damaged() -> None:
    seen = Snapshot(
        NOW,
        sets=tuple(make_sets()),
        pods=(*make_pods(), make_controller_pod()),
        records=(make_record(make_state("Running")),),
        jobs=(make_job("Failed"),),
        events=(make_event("Pod", "exp1-mnist-worker-0", "FailedMount", "no"),),
    )
    assert leave_out_damaged(seen) == seen
    empty = {"metadata": {"name": "a", "labels": None, "ownerReferences": None}, "spec": None, "status": {}}
    assert leave_out_damaged(Snapshot(NOW, pods=(empty,))).damaged == ()
