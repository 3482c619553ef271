"""`trainchart top` on a real cluster: what pods use is known with and without a metrics API, and to whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_cli_releases import trainchart
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.metrics_server import run_metrics_server
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

BUSY = """
import os, time
kept = bytearray(24 << 20) if os.environ["TASK_TYPE"] == "ps" else b""
while True:
    if os.environ["TASK_TYPE"] == "worker":
        end = time.monotonic() + 0.2
        while time.monotonic() < end: pass
    time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def release(admin: Access, module_namespace: str) -> Release:
    """A run whose workers compute half of the time, and whose parameter server fills memory."""
    roles = {
        "chief": TINY,
        "worker": {**TINY, "replicas": 2, "saveWaitSeconds": 0},
        "ps": {**TINY, "saveWaitSeconds": 0},
    }
    changes = {"command": ["python3", "-c", BUSY], "roles": {**roles, "evaluator": {"replicas": 0}}}
    values = merge_values(mnist_values(), merge_values(CONTROLLED, changes))
    made = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "mnist", values)
    made.install()
    return made


def read_top(release: Release, access: Access) -> dict[str, Any]:
    found = json.loads(trainchart(access, release.namespace, "top", release.name, "--format=json"))
    assert isinstance(found, dict)
    return found


def test_launchers_report_use_without_a_metrics_api(release: Release) -> None:
    def read(_: object) -> dict[str, Any] | None:
        found = read_top(release, release.access)
        return found if len(found["pods"]) == 4 and all(pod["cpu"] is not None for pod in found["pods"]) else None

    found = release.access.wait_for(read, "the use of all pods", namespace=release.namespace)
    pods = {pod["pod"].removeprefix("exp1-mnist-"): pod for pod in found["pods"]}
    assert list(pods) == ["chief-0", "ps-0", "worker-0", "worker-1"]
    assert {pod["source"] for pod in found["pods"]} == {"launcher"}
    assert pods["worker-0"]["cpu"] > pods["chief-0"]["cpu"] >= 0
    assert (pods["ps-0"]["cpuRequest"], pods["ps-0"]["memoryLimitBytes"]) == (0.01, 64 << 20)
    assert 24 << 20 < pods["ps-0"]["memoryBytes"] <= 64 << 20
    assert "this cluster has no working metrics API (metrics-server provides one)" in found["notes"]
    print(trainchart(release.access, release.namespace, "top", "exp1"))


def test_a_user_without_port_forward_sees_requests_and_why(release: Release, tmp_path: Path) -> None:
    user = make_user(release.access, release.namespace, "reader", "view", tmp_path)
    found = read_top(release, user)
    assert [(pod["cpu"], pod["cpuRequest"]) for pod in found["pods"]] == [(None, 0.01)] * 4
    assert any("cannot be queried" in note and "portforward" in note for note in found["notes"])


@pytest.mark.long
def test_the_metrics_api_comes_first_where_there_is_one(lasting_cluster: Cluster, release: Release) -> None:
    def read(_: object) -> dict[str, Any] | None:
        found = read_top(release, release.access)
        return found if {pod["source"] for pod in found["pods"]} == {"metrics-api"} else None

    with run_metrics_server(lasting_cluster, release.access):
        found = release.access.wait_for(read, "metrics of all pods", namespace=release.namespace)
    pods = {pod["pod"].removeprefix("exp1-mnist-"): pod for pod in found["pods"]}
    assert pods["worker-0"]["cpu"] > pods["chief-0"]["cpu"] >= 0
    assert 24 << 20 < pods["ps-0"]["memoryBytes"] <= 64 << 20
    assert found["notes"] == ["CPU and memory from the metrics API (all containers of a pod)"]
