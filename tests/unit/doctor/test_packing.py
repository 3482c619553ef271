"""Whether the pods of a release find nodes at once: room, taints, labels, ports and rules about where pods stand."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.doctor.cluster_results import word_fit
from trainchart.doctor.needs import PodGroup, add_limits, add_requests
from trainchart.doctor.packing import MAYBE, NO, YES, Fit, judge_fit
from trainchart.doctor.room import Room, read_room

GPU = "nvidia.com/gpu"
NAMESPACE = "team-a"


def make_node(name: str, *, labels: dict[str, str] | None = None, **room: str) -> dict[str, Any]:
    allocatable = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        **{key.replace("_", "-"): value for key, value in room.items()},
    }
    if "gpu" in allocatable:
        allocatable[GPU] = allocatable.pop("gpu")
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def make_group(name: str, count: int, cpu: str = "1", *, gpus: int = 0, **spec: Any) -> PodGroup:
    limits = {GPU: str(gpus)} if gpus else {}
    container = {"name": "training", "resources": {"requests": {"cpu": cpu}, "limits": limits}}
    pod = {"metadata": {"labels": {"role": name}}, "spec": {"containers": [container], **spec}}
    return PodGroup(name, count, pod, True)


def make_pod(node: str, cpu: str = "1", **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"namespace": NAMESPACE, **metadata}, "spec": {"nodeName": node, "containers": [container]}}


def judge(groups: list[PodGroup], *nodes: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> Fit:
    return judge_fit(groups, read_room(nodes, pods), NAMESPACE, random.Random(0))


def apart(role: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"role": role}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_that_have_room_fit() -> None:
    assert judge([make_group("worker", 6), make_group("ps", 2)], make_node("a"), make_node("b")).verdict == YES


def test_what_other_pods_hold_is_not_free() -> None:
    found = judge([make_group("worker", 6)], make_node("a"), pods=(make_pod("a", "4"),))
    assert (found.verdict, found.waiting) == (NO, (("worker", 2, "1 of 1 nodes: too little cpu left"),))


def test_pods_that_have_ended_hold_nothing() -> None:
    ended = {**make_pod("a", "4"), "status": {"phase": "Succeeded"}}
    assert judge([make_group("worker", 6)], make_node("a"), pods=(ended,)).verdict == YES


def test_a_node_without_a_name_holds_no_waiting_pod() -> None:
    waiting = {**make_pod("a", "4"), "spec": {"containers": []}}
    assert judge([make_group("worker", 6)], make_node(""), pods=(waiting,)).verdict == YES


def test_a_release_may_fit_only_when_placed_well() -> None:
    # Two small pods of one game land on both nodes, and then no node has room for the large one.
    found = judge([make_group("large", 1, "8"), make_group("small", 2, "3")], make_node("a"), make_node("b"))
    assert found.verdict == MAYBE
    assert 0 < found.won < found.played


def test_no_node_has_the_gpus() -> None:
    found = judge([make_group("worker", 1, gpus=2)], make_node("a", gpu="1"), make_node("b"))
    assert found.waiting == (("worker", 1, f"1 of 2 nodes: {GPU} 1 in all; 1 of 2 nodes: {GPU} 0 in all"),)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unschedulable": True}, "taint node.kubernetes.io/unschedulable:NoSchedule"),
        ({"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}, "taint gpu=yes:NoSchedule"),
        ({"taints": [{"key": "gpu", "effect": "NoExecute"}]}, "taint gpu:NoExecute"),
    ],
)
def test_a_closed_node_takes_nothing(change: dict[str, Any], reason: str) -> None:
    found = judge([make_group("worker", 1)], {**make_node("a"), "spec": change})
    assert found == Fit(NO, 0, 1, (("worker", 1, f"1 of 1 nodes: {reason}"),))
    tolerant = make_group("worker", 1, tolerations=[{"operator": "Exists"}])
    assert judge([tolerant], {**make_node("a"), "spec": change}).verdict == YES


def test_a_silent_node_takes_nothing() -> None:
    node = make_node("a")
    node["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ]
    assert judge([make_group("worker", 1)], node).waiting == (("worker", 1, "1 of 1 nodes: not ready"),)


@pytest.mark.parametrize(
    ("operator", "values", "fits"), [("Gt", ["2"], True), ("Gt", ["4"], False), ("Lt", ["4"], False)]
)
def test_node_affinity_compares_numbers(operator: str, values: list[str], fits: bool) -> None:
    expression = {"key": "generation", "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    found = judge([make_group("worker", 1, affinity=affinity)], make_node("a", labels={"generation": "4"}))
    assert (found.verdict == YES) is fits


def test_pods_on_the_network_of_the_node_need_one_each() -> None:
    group = make_group("worker", 2, hostNetwork=True)
    group.spec["containers"][0]["ports"] = [{"containerPort": 2222}]
    assert judge([group], make_node("a")).verdict == NO
    assert judge([group], make_node("a"), make_node("b")).verdict == YES


def test_pods_stand_apart_from_their_own_kind() -> None:
    group = make_group("worker", 3, affinity=apart("worker"))
    assert judge([group], make_node("a"), make_node("b")).verdict == NO
    assert judge([group], *map(make_node, "abc")).verdict == YES


def test_pods_that_are_there_keep_others_away() -> None:
    there = make_pod("a", labels={"role": "other"})
    there["spec"]["affinity"] = apart("worker")
    assert judge([make_group("worker", 1)], make_node("a"), pods=(there,)).verdict == NO
    elsewhere = {**there, "metadata": {**there["metadata"], "namespace": "team-b"}}
    assert judge([make_group("worker", 1)], make_node("a"), pods=(elsewhere,)).verdict == YES


def test_pods_stand_where_others_are() -> None:
    term = {"labelSelector": {"matchLabels": {"role": "cache"}}, "topologyKey": "zone"}
    group = make_group(
        "worker", 1, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    )
    nodes = [make_node("a", labels={"zone": "1"}), make_node("b", labels={"zone": "2"}, cpu="1")]
    assert judge([group], *nodes).verdict == NO
    assert judge([group], *nodes, pods=(make_pod("a", labels={"role": "cache"}),)).verdict == YES
    assert judge([group], *nodes, pods=(make_pod("b", labels={"role": "cache"}),)).verdict == NO


def test_pods_are_spread_over_zones() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"role": "worker"}},
    }
    group = make_group("worker", 4, topologySpreadConstraints=[constraint])
    nodes = [make_node("a", labels={"zone": "1"}), make_node("b", labels={"zone": "2"}, cpu="1")]
    assert judge([group], *nodes).verdict == NO
    nodes[1] = make_node("b", labels={"zone": "2"}, cpu="2")
    assert judge([group], *nodes).verdict == YES


def test_init_containers_and_sidecars_count() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **more}

    sidecar = container("500m", restartPolicy="Always")
    spec = {"initContainers": [sidecar, container("3")], "containers": [container("1"), container("1")]}
    assert add_requests(spec)["cpu"] == 3500
    assert add_limits(spec)["cpu"] == 3500
    spec["overhead"] = {"cpu": "250m"}  # type: ignore[assignment]
    assert add_requests(spec)["cpu"] == 3750


@settings(max_examples=60, deadline=None)
@given(
    cores=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    counts=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=3),
)
def test_verdicts_agree_with_trying_everything(cores: list[int], counts: list[tuple[int, int]]) -> None:
    groups = [make_group(f"g{number}", count, str(cpu)) for number, (count, cpu) in enumerate(counts)]
    nodes = [make_node(f"n{number}", cpu=str(cpu)) for number, cpu in enumerate(cores)]
    pods = [cpu for count, cpu in counts for _ in range(count)]
    verdict = judge(groups, *nodes).verdict
    assert (verdict == NO) is not can_be_placed(pods, cores)


def can_be_placed(pods: list[int], free: list[int]) -> bool:
    """Try every placement."""
    if not pods:
        return True
    tries = ([each - pods[0] * (place == node) for place, each in enumerate(free)] for node in range(len(free)))
    return any(can_be_placed(pods[1:], left) for left in tries if min(left) >= 0)


def test_a_million_pods_are_counted_and_not_placed() -> None:
    found = judge([make_group("worker", 10**9, affinity=apart("none"))], make_node("a"))
    assert found.waiting == (("worker", 10**9 - 8, "1 of 1 nodes: too little cpu left"),)


def test_an_empty_cluster_has_no_room() -> None:
    assert judge_fit([make_group("worker", 1)], Room((), ()), NAMESPACE, random.Random(0)).waiting[0][2] == (
        "the cluster has no node"
    )


@pytest.mark.parametrize(
    ("why", "words", "others"),
    [
        ("2 of 2 nodes: taint gpu=yes:NoSchedule", "tolerations", ("nodeSelector", "request less")),
        ("1 of 1 nodes: taint node.kubernetes.io/unschedulable:NoSchedule", "uncordon", ("tolerations", "less")),
        (
            "2 of 2 nodes: do not have the labels that the pods ask for (nodeSelector, nodeAffinity)",
            "nodeSelector",
            ("less",),
        ),
        ("1 of 2 nodes: taint a:NoSchedule; 1 of 2 nodes: too little cpu left", "request less", ()),
        ("1 of 2 nodes: taint a:NoSchedule; 1 of 2 nodes: too little cpu left", "tolerations", ()),
    ],
)
def test_the_hint_fits_why_no_node_is_found(why: str, words: str, others: tuple[str, ...]) -> None:
    remedy = word_fit(Fit(NO, 0, 1, (("worker", 1, why),)), [make_group("worker", 1)], read_room([], [])).remedy
    assert words in remedy
    assert not [each for each in others if each in remedy]
