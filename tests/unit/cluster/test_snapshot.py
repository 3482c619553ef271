"""Sorting what was seen of a cluster by training: in a time that grows with what was seen, not with its square."""

from __future__ import annotations

import pytest

from tests.small_cluster.cluster_objects import NOW, make_pod, make_set
from trainchart.cluster import snapshot
from trainchart.cluster.snapshot import Snapshot, Unreadable, find_trainings

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
