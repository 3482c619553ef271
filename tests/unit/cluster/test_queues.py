"""Where a release stands in its queue, from what an administrator sees, a user, and one who sees nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import GPU, make_sets
from trainchart.cluster.queues import QueueSight, find_queue, find_standing
from trainchart.cluster.snapshot import Unreadable
from trainchart.reports.report import QueueStanding
from trainchart.reports.text import describe_standing

HIDDEN = Unreadable("clusterqueues", "forbidden", "")


def make_queued(gpus: int = 1) -> list[dict[str, Any]]:
    sets = make_sets(0)
    for each in sets:
        each["metadata"]["annotations"]["trainchart/queue"] = "research"
        container = each["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"requests": {"cpu": "500m"}}
        if gpus and each["metadata"]["name"].endswith("worker"):
            container["resources"]["limits"] = {GPU: str(gpus)}
    return sets


def make_pending(*owners: str) -> tuple[dict[str, Any], ...]:
    return tuple({"metadata": {"name": owner, "ownerReferences": [{"name": owner}]}} for owner in owners)


def make_cluster_queue(used: str = "6", flavors: int = 1) -> tuple[dict[str, Any], ...]:
    quota = {"name": GPU, "nominalQuota": "8"}
    group = [{"name": f"flavor{number}", "resources": [quota]} for number in range(flavors)]
    usage = [{"name": "flavor0", "resources": [{"name": GPU, "total": used}]}]
    return ({"spec": {"resourceGroups": [{"flavors": group}]}, "status": {"flavorsReservation": usage}},)


def test_administrator_sees_position_needs_and_what_is_free() -> None:
    sight = QueueSight(make_pending("other", "exp1-mnist-ps", "third"), make_cluster_queue())
    standing = find_standing("research", make_queued(2), sight)
    assert standing == QueueStanding("research", 2, 3, {GPU: 4.0}, {GPU: 2.0})
    assert describe_standing(standing) == f"waits in queue research, position 2 of 3, needs 4 {GPU}, 2 are free"


@pytest.mark.parametrize(("used", "flavors", "free"), [("12", 1, 0.0), ("7", 2, 9.0), ("7", 1, 1.0)])
def test_free_is_summed_over_flavors_and_never_negative(used: str, flavors: int, free: float) -> None:
    sight = QueueSight((), make_cluster_queue(used, flavors))
    assert find_standing("research", make_queued(), sight).free == {GPU: free}


def test_user_without_rights_learns_what_is_needed() -> None:
    standing = find_standing("research", make_queued(), QueueSight(HIDDEN, HIDDEN))
    assert (standing.position, standing.length, standing.free) == (None, None, None)
    assert describe_standing(standing) == f"waits in queue research, needs 2 {GPU}"


def test_training_without_gpus_needs_cpus() -> None:
    assert find_standing("research", make_queued(0), QueueSight()).needs == {"cpu": 2.0}


def test_junk_of_the_cluster_is_passed_over() -> None:
    junk: tuple[dict[str, Any], ...] = ({"spec": {"resourceGroups": "x"}, "status": {"flavorsReservation": [1]}},)
    pending: tuple[dict[str, Any], ...] = ({"metadata": {"ownerReferences": "x"}}, {})
    standing = find_standing("research", make_queued(), QueueSight(pending, junk))
    assert (standing.position, standing.length, standing.free) == (None, 2, {GPU: 0})


def test_queue_is_read_from_the_sets() -> None:
    assert (find_queue(tuple(make_queued())), find_queue(tuple(make_sets())), find_queue(HIDDEN)) == (
        "research",
        "",
        "",
    )
