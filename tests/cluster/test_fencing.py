"""A pod that lives on after its deletion stops writing before its successor starts, though nobody can tell it to."""

from __future__ import annotations

import psutil
import pytest
from lightkube.core.client import Client
from lightkube.core.exceptions import ApiError

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.faults import Faults, network, nodes
from tests.cluster.testcluster.faults.processes import Container, Victim, find_processes
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values

pytestmark = pytest.mark.cluster

WRITE = """
import fcntl, os, time
folder, node = os.environ["TRAINCHART_CHECKPOINTS_DIR"], os.environ["TRAINCHART_NODE_NAME"]
lock = open(folder + "/lock", "w")
with open(folder + "/written", "a") as file:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("two at once", file=file)
    while True:
        print(node, file=file, flush=True)
        time.sleep(0.05)
"""
"""Stands in for a training that writes checkpoints; both nodes of the test cluster share the kernel that locks."""


def test_zombie_on_a_silent_node_stops_before_successor_writes(admin: Access, namespace: str, faults: Faults) -> None:
    values = {
        "command": ["python3", "-c", WRITE],
        "tensorboard": {"enabled": False},
        "roles": {"worker": {"cpu": "10m", "memory": "64Mi", "shmSize": "16Mi"}},
        "volumes": {"checkpoints": {"accessMode": "ReadWriteMany"}},
    }
    release = Release(admin, namespace, "exp1", PROJECT / "charts" / "digits", merge_values(digits_values(), values))
    elsewhere = faults.inflict(nodes.cordon_node("node1"))
    release.install()
    (name,) = release.wait_until_running(1)
    faults.undo(elsewhere)
    admin.wait_for(lambda _: "node2" in read_written(release, name), "something written", namespace=namespace)
    (program,) = find_processes(faults.site, Container(namespace, name), Victim.TRAINING)

    # The volume stays within reach of the lost node, which is what makes it dangerous.
    faults.inflict(nodes.cordon_node("node2"))
    faults.inflict(network.partition_node("node2"))
    admin.kubectl("delete", "pod", name, "-n", namespace, "--force", "--grace-period=0")
    said = admin.wait_for(
        lambda client: read_log(client, namespace, name, "attempt 1 of"), "the successor's start", namespace=namespace
    )

    assert f"pod {name} on node node2 (" in said and "it is a zombie" in said
    assert said.index("zombie") < said.index("attempt 1 of")
    assert not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    admin.wait_for(lambda _: "node1" in read_written(release, name), "something written", namespace=namespace)
    written = [line.split(maxsplit=1)[1] for line in read_written(release, name).splitlines()]
    assert written == ["node2", "node1"]


def read_log(client: Client, namespace: str, pod: str, expected: str) -> str | None:
    """Return a pod's log once it holds what is expected."""
    try:
        said = "\n".join(client.log(pod, namespace=namespace, container="training"))
    except ApiError:
        # The container has not started.
        return None
    return said if expected in said else None


def read_written(release: Release, pod: str) -> str:
    """Return who has written, in order, neighbours counted."""
    argv = ["kubectl", "exec", pod, "-n", release.namespace, "-c", "training", "--"]
    return release.access.run([*argv, "sh", "-c", "uniq -c $TRAINCHART_CHECKPOINTS_DIR/written"], check=False).stdout
