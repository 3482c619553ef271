"""image.injectLauncher: what pods get for a training image that has no launcher, and that others get nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart_runtime.contract import LAUNCHER_CONTAINER, LAUNCHER_PATH

CHART = Path(__file__).parent.parent.parent / "charts" / "mnist"
RUNTIME_IMAGE = "registry.example.com/ml/trainchart-runtime:1.0.0"
INJECTED = ("image.injectLauncher=true", f"run.controller.image={RUNTIME_IMAGE}")


@cache
def render(*sets: str) -> Rendering:
    return find_engine("sdk").render(CHART, release="exp-7", overrides=ValueOverrides(sets=sets))


def training_pods(*sets: str) -> list[Mapping[str, Any]]:
    sets_of_pods = [m.document for m in render(*sets).manifests if m.kind == "StatefulSet"]
    return [document["spec"]["template"]["spec"] for document in sets_of_pods]


def test_runtime_image_copies_launcher_to_where_roles_start_it() -> None:
    pods = training_pods(*INJECTED)
    assert len(pods) == 4
    for pod in pods:
        (copying,), (training,) = pod["initContainers"], pod["containers"]
        (target,) = copying["volumeMounts"]
        (mount,) = [mount for mount in training["volumeMounts"] if mount["name"] == target["name"]]
        assert copying["name"] == LAUNCHER_CONTAINER
        assert copying["image"] == RUNTIME_IMAGE
        assert copying["command"][-1] == f"import shutil; shutil.copy('{LAUNCHER_PATH}', '{target['mountPath']}')"
        assert training["command"][1] == mount["mountPath"] == LAUNCHER_PATH
        assert mount["subPath"] == "launcher.pyz", "the folder would hide what the image has in it"
        assert mount["readOnly"] is True
        assert {"name": target["name"], "emptyDir": {"sizeLimit": "64Mi"}} in pod["volumes"]


def test_copying_container_is_small_restricted_and_sees_no_gpu() -> None:
    for pod in training_pods(*INJECTED):
        (copying,) = pod["initContainers"]
        amounts = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
        assert copying["resources"]["requests"] == copying["resources"]["limits"] == amounts
        assert copying["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in copying["env"]


def test_without_it_a_pod_has_no_trace_of_it() -> None:
    for pod in training_pods(f"run.controller.image={RUNTIME_IMAGE}"):
        assert "initContainers" not in pod
        assert "launcher" not in [volume["name"] for volume in pod["volumes"]]


def test_launcher_is_there_before_the_users_containers_run() -> None:
    own = ("initContainers[0].name=fetch", "initContainers[0].image=registry.example.com/fetch:1")
    assert [[each["name"] for each in pod["initContainers"]] for pod in training_pods(*INJECTED, *own)] == [
        [LAUNCHER_CONTAINER, "fetch"]
    ] * 4


def test_an_installation_without_a_runtime_image_is_refused() -> None:
    with pytest.raises(RenderError) as refusal:
        render("image.injectLauncher=true")
    assert "image.injectLauncher: set run.controller.image to the runtime image" in str(refusal.value.problems)
