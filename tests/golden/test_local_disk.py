"""What pods may take of their nodes' disks: every container says it, and no default cuts a volume of a training."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides

ROOT = Path(__file__).parent.parent.parent
CHARTS = sorted(path.parent for path in (ROOT / "charts").glob("*/Chart.yaml"))
MNIST = ROOT / "charts" / "mnist"
DISK = "ephemeral-storage"
EVERYTHING = {
    "image": {"injectLauncher": True},
    "run": {"controller": {"image": "registry.example.com/ml/runtime:1.0.0"}},
}


def render_pods(chart: Path, values: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the pod specs of a chart by the name of what makes the pods."""
    overrides = ValueOverrides(files=(("values", json.dumps(values)),))
    found = {}
    for manifest in find_engine("sdk").render(chart, release="exp", overrides=overrides).manifests:
        if manifest.kind in ("StatefulSet", "Deployment", "Job"):
            found[manifest.name] = manifest.document["spec"]["template"]["spec"]
        elif manifest.kind == "Pod":
            found[manifest.name] = manifest.document["spec"]
    return found


def containers(pods: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, pod in pods.items():
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield f"{name}/{container['name']}", container["resources"]


def worker_limit(**role: Any) -> str | None:
    pods = render_pods(MNIST, {"roles": {"worker": role}})
    limit: str | None = pods["exp-mnist-worker"]["containers"][0]["resources"]["limits"].get(DISK)
    return limit


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "injected"])
def test_every_container_and_empty_dir_is_bounded(chart: Path, values: Mapping[str, Any]) -> None:
    pods = render_pods(chart, values)
    assert len(pods) >= 3
    unbounded = [
        where for where, amounts in containers(pods) if not (DISK in amounts["requests"] and DISK in amounts["limits"])
    ]
    assert unbounded == []
    folders = [volume["emptyDir"] for pod in pods.values() for volume in pod.get("volumes", ()) if "emptyDir" in volume]
    assert folders and all(folder.get("sizeLimit") for folder in folders)


@pytest.mark.parametrize(
    ("volume", "limit"),
    [
        ({"emptyDir": {}}, None),
        ({"emptyDir": None}, None),
        ({"emptyDir": {"sizeLimit": "100Gi"}}, "121Gi"),
        ({"emptyDir": {"sizeLimit": "1.5Gi"}}, "23040Mi"),
        ({"emptyDir": {"medium": "Memory"}}, "21Gi"),
        ({"hostPath": {"path": "/scratch"}}, "21Gi"),
        ({"persistentVolumeClaim": {"claimName": "data"}}, "21Gi"),
    ],
    ids=["unbounded", "null", "bounded", "fraction", "memory", "host path", "claim"],
)
def test_limit_leaves_room_for_own_volumes(volume: Mapping[str, Any], limit: str | None) -> None:
    given = [{"name": "checkpoints", **volume}]
    assert worker_limit(extraVolumes=given) == limit
    pods = render_pods(MNIST, {"extraVolumes": given})
    assert {resources["limits"].get(DISK) for where, resources in containers(pods) if "/training" in where} == {limit}


def test_sizes_are_values() -> None:
    assert worker_limit(tmpSize="300Gi") == "301Gi"
    assert worker_limit(ephemeralStorageLimit="50Gi") == "50Gi"
    assert worker_limit(ephemeralStorage="40Gi") == "40Gi", "never below the request"
    pods = render_pods(MNIST, {"roles": {"worker": {"tmpSize": "300Gi"}}})
    sizes = {volume["name"]: volume.get("emptyDir") for volume in pods["exp-mnist-worker"]["volumes"]}
    assert sizes["tmp"] == {"sizeLimit": "300Gi"}


def test_nodes_that_count_no_disk_get_no_request() -> None:
    none = {"ephemeralStorage": ""}
    roles = dict.fromkeys(("chief", "worker", "ps", "evaluator"), none)
    values = {"roles": roles, "run": {"controller": none}, "tensorboard": {"enabled": True, **none}}
    injected = {
        **values,
        "image": EVERYTHING["image"],
        "run": {"controller": {**EVERYTHING["run"]["controller"], **none}},
    }
    for each in (values, injected):
        assert DISK not in json.dumps(render_pods(MNIST, each))


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ({"ephemeralStorage": "2Gi", "ephemeralStorageLimit": "1Gi"}, "ephemeralStorageLimit"),
        ({"tmpSize": "0"}, "tmpSize"),
        ({"resources": {"limits": {DISK: "1Gi"}}}, "set roles.worker.ephemeralStorage instead"),
    ],
)
def test_sizes_that_cannot_be_are_refused(role: Mapping[str, Any], words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        worker_limit(**role)
    assert words in str(refusal.value.problems)
