"""Ephemeral volumes as pods get them: on the node's disk, or a claim of each pod; and what --set may not combine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

CHART = Path(__file__).parent / "parameter-server" / "chart"
DISK = "ephemeral-storage"
SCRATCH = {"ephemeral": True, "existingClaim": "", "size": "20Gi", "readOnly": False, "keep": False}
"""Turns the volume data of the chart into an ephemeral one."""


def render(data: Mapping[str, Any], volumes: Mapping[str, Any] | None = None, **more: Any) -> Rendering:
    values = json.dumps({"volumes": {"data": data, **(volumes or {})}, **more})
    return find_engine("sdk").render(CHART, release="exp", overrides=ValueOverrides(files=(("values", values),)))


def pods_of(rendering: Rendering) -> dict[str, Any]:
    sets = (each for each in rendering.manifests if each.kind == "StatefulSet")
    return {each.name.removeprefix("exp-parameter-server-"): each.document["spec"]["template"]["spec"] for each in sets}


def source_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    return next(dict(volume) for volume in pod["volumes"] if volume["name"] == "volume-data")


@pytest.mark.parametrize("storage_class", ["", "-"])
def test_without_a_class_it_is_on_the_nodes_disk(storage_class: str) -> None:
    rendering = render({**SCRATCH, "storageClass": storage_class})
    for pod in pods_of(rendering).values():
        assert source_of(pod) == {"name": "volume-data", "emptyDir": {"sizeLimit": "20Gi"}}
        resources = pod["containers"][0]["resources"]
        assert (resources["requests"][DISK], resources["limits"][DISK]) == ("21Gi", "41Gi")
    claims = [each.name for each in rendering.manifests if each.kind == "PersistentVolumeClaim"]
    assert claims == ["exp-parameter-server-checkpoints", "exp-parameter-server-logs"]


def test_with_a_class_it_is_a_claim_of_the_pod() -> None:
    data = {**SCRATCH, "storageClass": "fast", "annotations": {"example.com/tier": "1"}, "accessMode": "ReadWriteMany"}
    pods = pods_of(render(data))
    labels = {"name": "parameter-server", "instance": "exp", "component": "worker"}
    template = {
        "metadata": {
            "labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()},
            "annotations": {"example.com/tier": "1"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "20Gi"}},
        },
    }
    assert source_of(pods["worker"]) == {"name": "volume-data", "ephemeral": {"volumeClaimTemplate": template}}
    resources = pods["worker"]["containers"][0]["resources"]
    assert (resources["requests"][DISK], resources["limits"][DISK]) == ("1Gi", "21Gi")


def test_only_pods_that_mount_it_need_room() -> None:
    pods = pods_of(render({**SCRATCH, "roles": ["worker"], "size": "1500Mi"}))
    requests = {role: pod["containers"][0]["resources"]["requests"][DISK] for role, pod in pods.items()}
    assert requests.pop("worker") == "2524Mi"
    assert set(requests.values()) == {"1Gi"}


def test_nodes_that_count_no_disk_get_no_request() -> None:
    roles = {role: {"ephemeralStorage": ""} for role in ("chief", "worker", "ps", "evaluator")}
    for pod in pods_of(render(SCRATCH, roles=roles)).values():
        assert DISK not in json.dumps(pod["containers"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keep": True}, "volumes.data.keep: not for an ephemeral volume"),
        ({"existingClaim": "team-data"}, "volumes.data.existingClaim: not for an ephemeral volume"),
        ({"uri": "s3://bucket/data"}, "volumes.data.uri: not for an ephemeral volume"),
        ({"readOnly": True}, "volumes.data.readOnly: not for an ephemeral volume"),
        ({"size": ""}, "volumes.data.size: an ephemeral volume needs a size"),
        ({"size": "0"}, "volumes.data.size: 0 is not a positive quantity"),
    ],
)
def test_what_only_a_claim_can_do_is_refused(change: Mapping[str, Any], words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render({**SCRATCH, **change})
    assert words in str(refusal.value.problems)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"roles": {"worker": {"ephemeralStorageLimit": "20Gi"}}}, "20Gi of the node's disk is less than the request"),
        (
            {"volumes": {"checkpoints": {"ephemeral": True, "keep": False}}},
            "what a pod saves would be lost with the pod",
        ),
        ({"volumes": {"logs": {"ephemeral": True}}}, "TensorBoard cannot read another pod's volume"),
    ],
)
def test_what_would_lose_data_or_not_start_is_refused(more: Mapping[str, Any], words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render(SCRATCH, **more)
    assert words in str(refusal.value.problems)
