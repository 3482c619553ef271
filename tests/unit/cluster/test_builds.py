"""Pods of one release that run different builds under one tag, and those that only seem to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_end, make_pod, make_pods, make_sets
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey
from trainchart_runtime import causes

IMAGE = "registry.trainchart.test/ml/ctr:2.3.1"
NEW = "registry.trainchart.test/ml/ctr@sha256:617985ed037a03a7c26dbe7c9f29574b46197beff8dc9a84548f15223fbc7039"
OLD = "registry.trainchart.test/ml/ctr@sha256:3f3ff0c7035c4c27c4dba41f12cf6c696a6610ba6941cdc3637e696d06c0c7bf"
LOADED = "sha256:e997248b1cf90b948961b861a15987604ada90337bb3d2691041a996166af110"


def make_node(name: str, architecture: str = "amd64") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"architecture": architecture}}}


NODES = make_node("node1"), make_node("node2")


def run_build(task: str, build: str, *, node: str = "node2", image: str = IMAGE) -> dict[str, Any]:
    pod = make_pod(task, node=node)
    pod["spec"]["containers"][0]["image"] = image
    pod["status"]["containerStatuses"][0] |= {"image": image, "imageID": build}
    return pod


def find(odd: dict[str, Any], build: str = NEW, nodes: tuple[Any, ...] = NODES, image: str = IMAGE) -> list[str]:
    pods = {task.replace("-", "_"): run_build(task, build, image=image) for task in ("chief-0", "worker-0", "ps-0")}
    seen = Snapshot(NOW, sets=tuple(make_sets()), pods=tuple(make_pods(**pods, worker_1=odd)), nodes=nodes)
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    return [each for each in remarks if "build" in each]


def test_pods_of_another_build_under_the_same_tag_are_named() -> None:
    assert find(run_build("worker-1", OLD, node="node1")) == [
        f"the pods run different builds of {IMAGE}: exp1-mnist-worker-1 on node1 has sha256:3f3ff0c7035c, "
        "exp1-mnist-chief-0, exp1-mnist-worker-0, exp1-mnist-ps-0 on node2 have sha256:617985ed037a. The tag was "
        "pushed again, and a node keeps what it has pulled. Different builds may be incompatible: fix this "
        "first. Set image.digest in the values to the intended build "
        f"({NEW.partition('@')[2]} or {OLD.partition('@')[2]}), or push it under a new tag, and upgrade; "
        "image.pullPolicy=Always alone does not keep a tag from moving during a run"
    ]


def test_builds_loaded_by_hand_are_compared_with_each_other() -> None:
    other = f"docker://{LOADED[:-1]}1"
    [remark] = find(run_build("worker-1", other, node="node1"), LOADED)
    assert "Load the same image on every node, or push the intended build under a new tag, and upgrade" in remark
    assert remark.startswith(
        f"the pods run different builds of {IMAGE}: exp1-mnist-worker-1 on node1 has sha256:e99724"
    )


@pytest.mark.parametrize(
    "odd",
    [
        run_build("worker-1", NEW, node="node1"),
        run_build("worker-1", "", node="node1"),
        run_build("worker-1", LOADED, node="node1"),
        run_build("worker-1", OLD.replace("registry.", "mirror."), node="node1"),
        run_build("worker-1", OLD, node="node1", image=IMAGE.replace("2.3.1", "2.3.2")),
        run_build("worker-1", f"docker-pullable://{NEW}", node="node1"),
    ],
    ids=["same", "not pulled yet", "loaded by hand", "from a mirror", "another tag", "of Docker"],
)
def test_pods_of_one_build_are_not_named(odd: dict[str, Any]) -> None:
    assert not find(odd)


def test_image_named_by_digest_is_one_build() -> None:
    pinned = f"{IMAGE}@{NEW.partition('@')[2]}"
    assert not find(run_build("worker-1", OLD, node="node1", image=pinned), image=pinned)


def test_pod_that_goes_away_counts_no_more() -> None:
    odd = run_build("worker-1", OLD, node="node1")
    odd["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    assert not find(odd)


def test_each_kind_of_processor_may_have_its_own_image() -> None:
    odd = run_build("worker-1", OLD, node="node1")
    assert not find(odd, nodes=(make_node("node1", "arm64"), make_node("node2")))


def test_while_no_node_is_known_only_a_run_in_trouble_counts() -> None:
    odd = run_build("worker-1", OLD, node="node1")
    assert not find(odd, nodes=())
    odd["status"]["containerStatuses"][0]["lastState"] = {"terminated": make_end(causes.PEER_LOST)}
    assert find(odd, nodes=())
