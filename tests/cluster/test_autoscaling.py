"""A model server has more pods under load and fewer after it: docs/serving.md, "On a cluster"."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.metrics_server import run_metrics_server
from tests.cluster.testcluster.model_servers import install_server, train_export, wait_for_pods
from tests.cluster.testcluster.releases import Release
from tests.cluster.testcluster.serving_client import start_client

pytestmark = [pytest.mark.cluster, pytest.mark.long]

SCALING = {"enabled": True, "minReplicas": 1, "maxReplicas": 3, "cpuPercent": 60, "scaleDownSeconds": 10}
RESOURCES = {"requests": {"cpu": "200m", "memory": "512Mi"}}
SECONDS = 180
"""Deadline for the autoscaler: it hears of the load of two readings, then new pods load the model."""


@pytest.fixture(scope="module")
def metrics(lasting_cluster: Cluster, admin: Access) -> Iterator[None]:
    with run_metrics_server(lasting_cluster, admin):
        yield


@pytest.fixture(scope="module")
def server(admin: Access, metrics: None, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """One pod that serves version 40; the autoscaler may start two more."""
    content = train_export(admin, module_namespace, tmp_path_factory.mktemp("chart"))
    folder = tmp_path_factory.mktemp("project")
    return install_server(admin, module_namespace, folder, content, autoscaling=SCALING, resources=RESOURCES)


def test_pods_come_under_load_and_go_after_it(admin: Access, server: Release) -> None:
    """And no request fails meanwhile, of a few that are sent all the time."""
    wait_for_pods(server, 1)
    steady = start_client(admin, server.namespace, "steady", server.name, "digits", rate=2)
    steady.wait_for_more(4)

    load = start_client(admin, server.namespace, "load", server.name, "digits", rate=100)
    wait_for_pods(server, 3, SECONDS)
    counts = load.wait_for_more(50)
    assert counts["failed"] == 0, counts

    admin.kubectl("delete", "pod/load", "-n", server.namespace, "--grace-period=0", "--force")
    wait_for_pods(server, 1, SECONDS)
    counts = steady.wait_for_more(10)
    assert counts["failed"] == 0, counts
