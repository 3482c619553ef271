"""Pods of the test cluster behave as anywhere: what containers rely on without asking."""

from __future__ import annotations

import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.pods import dump_objects, plan_pod

pytestmark = pytest.mark.cluster

LEAVE_ORPHAN = "sleep 0.1 & echo $!"
"""Its process ends after the shell that started it, and so becomes the child of the pod's process 1."""


def test_orphans_of_a_shared_process_namespace_are_reaped(admin: Access, own_cluster: Cluster, namespace: str) -> None:
    pod = plan_pod("shared", "sleep 3600", node="node1")
    pod["spec"]["shareProcessNamespace"] = True
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(pod))
    admin.kubectl("wait", "--for=condition=Ready", "pod/shared", "-n", namespace, "--timeout=60s")

    def run(*argv: str) -> str:
        return admin.kubectl("exec", "shared", "-n", namespace, "--", *argv)

    assert run("cat", "/proc/1/comm") == "pause\n"
    orphan = run("sh", "-c", LEAVE_ORPHAN).strip()

    def is_reaped(_: Client) -> bool:
        return orphan not in run("ls", "/proc").split()

    admin.wait_for(is_reaped, f"process {orphan} reaped", namespace=namespace, deadline_seconds=20)
