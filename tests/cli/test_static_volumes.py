"""Charts of the family static-volumes: what they hold, and which values they refuse with both Helms' engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import make_family_chart, render_family_chart
from trainchart.errors import RenderError
from trainchart.helm.rendering import Rendering

CEPH = {
    "driver": "rook-ceph.cephfs.csi.ceph.com",
    "volumeAttributes": {"clusterID": "rook-ceph", "fsName": "myfs", "rootPath": "/exports/a"},
    "nodeStageSecretRef": {"name": "ceph-a", "namespace": "rook-ceph"},
    "size": "1Ti",
}
NFS = {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "nfs", "share": "/a"}, "size": "1Ti"}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family_chart("static-volumes", tmp_path_factory.mktemp("project"))


def render(chart: Path, namespace: str = "storage", **volumes: Any) -> Rendering:
    values = {"volumes": {"flowers": None, "scratch": None, **volumes}}
    return render_family_chart(chart, "team", namespace, values)


def read(rendering: Rendering) -> dict[str, dict[str, Any]]:
    return {each.kind: each.document for each in rendering.manifests}


def test_a_volume_is_kept_for_one_claim(chart: Path) -> None:
    found = read(render(chart, a={**CEPH, "mountOptions": ["debug"]}))
    volume, claim = found["PersistentVolume"], found["PersistentVolumeClaim"]
    name = volume["metadata"]["name"]
    assert name.startswith("team-a-")
    assert volume["spec"] == {
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Ti"},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "storage", "name": "team-a"},
        "mountOptions": ["debug"],
        "csi": {
            "driver": CEPH["driver"],
            "volumeHandle": name,
            "volumeAttributes": {**CEPH["volumeAttributes"], "staticVolume": "true"},
            "nodeStageSecretRef": CEPH["nodeStageSecretRef"],
        },
    }
    assert claim["metadata"]["name"] == "team-a"
    assert "namespace" not in claim["metadata"]
    assert claim["spec"] == {
        "storageClassName": "",
        "volumeName": name,
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
    }
    (other, _) = render(chart, namespace="other", a=CEPH).manifests
    assert other.name != name


def test_a_claim_of_another_namespace_is_left_to_its_team(chart: Path) -> None:
    rendering = render(chart, a={**NFS, "claim": {"namespace": "vision", "name": "flowers"}})
    (volume,) = rendering.manifests
    assert volume.document["spec"]["claimRef"]["namespace"] == "vision"
    assert volume.document["spec"]["csi"]["volumeAttributes"] == NFS["volumeAttributes"]
    assert f"volumeName: {volume.name}" in rendering.notes and "existingClaim: flowers" in rendering.notes


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({**NFS, "driver": "kubernetes.io/glusterfs"}, "volumes/a/driver"),
        ({**NFS, "accessModes": ["RWX"]}, "volumes/a/accessModes"),
        ({**NFS, "accessModes": []}, "volumes/a/accessModes"),
        ({**NFS, "size": "much"}, "volumes/a/size"),
        ({**NFS, "server": "nfs"}, "server"),
        ({"driver": "nfs.csi.k8s.io"}, "size"),
        ({**NFS, "claim": {"name": "a"}}, "namespace"),
        ({**NFS, "reclaimPolicy": "Delete"}, "reclaimPolicy"),
        ({**NFS, "volumeAttributes": {"server": "nfs"}}, "volumes.a.volumeAttributes.share: nfs.csi.k8s.io needs it"),
        ({**CEPH, "nodeStageSecretRef": None}, "volumes.a.nodeStageSecretRef: CephFS needs a Secret"),
        (
            {**CEPH, "volumeAttributes": {"clusterID": "c", "fsName": "f"}},
            "volumes.a.volumeAttributes.rootPath: rook-ceph.cephfs.csi.ceph.com needs it",
        ),
        ({**CEPH, "driver": "rbd.csi.ceph.com"}, "a file system on Ceph RBD serves only one node"),
    ],
)
def test_wrong_values_are_refused(chart: Path, volume: dict[str, Any], words: str) -> None:
    given = {key: value for key, value in volume.items() if value is not None}
    with pytest.raises(RenderError) as refusal:
        render(chart, a=given)
    told = " ".join(map(str, refusal.value.problems))
    assert words in told or words.replace("/", ".") in told, told
