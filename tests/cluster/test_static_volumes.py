"""Folders that exist already as volumes: bound to one claim, mounted on both nodes, and left alone by uninstall."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.components import VOLUMES
from tests.cluster.testcluster.pods import dump_objects, plan_claim, plan_pod
from tests.cluster.testcluster.releases import PROJECT, Release

pytestmark = pytest.mark.cluster

GROUP = 4321
DRIVER = "storage.trainchart.test"
SPEC = PROJECT / "chart-templates" / "static-volumes" / "tests" / "exports.yaml"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    shutil.copy(SPEC, tmp_path / "models" / "exports.yaml")
    subprocess.run([sys.executable, "-m", "trainchart", "generate"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "charts" / "exports"


def test_a_folder_is_bound_mounted_and_kept(chart: Path, own_cluster: Cluster, admin: Access, namespace: str) -> None:
    folder = f"export-{namespace}"
    own_cluster.run_inside(["mkdir", f"{VOLUMES}/{folder}"])
    volume = {"driver": DRIVER, "volumeHandle": folder, "size": "1Gi"}
    team = {**volume, "claim": {"namespace": namespace, "name": "team"}, "accessModes": ["ReadOnlyMany"]}
    values = {"volumes": {"flowers": None, "scratch": None, "own": volume, "team": team}}
    release = Release(admin, namespace, "exports", chart, values)
    notes = release.install()

    claim = plan_claim("team", "", "ReadOnlyMany")
    claim["spec"]["volumeName"] = next(line.split()[-1] for line in notes.splitlines() if "volumeName:" in line)
    # Another claim of the same kind comes first, and does not get the volume.
    thief = plan_claim("thief", "", "ReadOnlyMany")
    write = "echo roses > /volume/a && cat /volume/a"
    writer = plan_pod("writer", write, node="node1", claim="exports-own", fs_group=GROUP)
    apply(admin, namespace, thief, claim, writer)
    for name in ("exports-own", "team"):
        admin.wait_for(lambda client, name=name: is_bound(client, namespace, name), name, namespace=namespace)  # type: ignore[misc]
    assert not is_bound(admin.client(), namespace, "thief")
    assert admin.wait_for_log("writer", namespace=namespace) == "roses\n"
    apply(admin, namespace, plan_pod("reader", "cat /volume/a", node="node2", claim="team", is_read_only=True))
    assert admin.wait_for_log("reader", namespace=namespace) == "roses\n"

    admin.kubectl("delete", "pod/writer", "pod/reader", "-n", namespace)
    release.uninstall()
    admin.kubectl("delete", "pvc/team", "-n", namespace)

    def are_gone(client: Client) -> bool:
        return not any(each.spec and each.spec.csi and each.spec.csi.volumeHandle == folder for each in volumes(client))

    admin.wait_for(are_gone, "the volumes gone", namespace=namespace)
    assert own_cluster.run_inside(["cat", f"{VOLUMES}/{folder}/a"]).stdout == "roses\n"
    own_cluster.run_inside(["rm", "-r", f"{VOLUMES}/{folder}"])


def volumes(client: Client) -> list[PersistentVolume]:
    return list(client.list(PersistentVolume))


def apply(admin: Access, namespace: str, *objects: dict[str, Any]) -> None:
    admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*objects))


def is_bound(client: Client, namespace: str, name: str) -> bool:
    status = client.get(PersistentVolumeClaim, name, namespace=namespace).status
    return status is not None and status.phase == "Bound"
