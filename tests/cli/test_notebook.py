"""Charts of the family notebook: what they mount and hold, and that they fit the image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import make_family_chart, render_family_chart
from trainchart.errors import RenderError

RUNS = {"exp-7": None, "exp-8": None}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_family_chart("notebook", tmp_path_factory.mktemp("project"))


def find_pod(chart: Path, **values: Any) -> dict[str, Any]:
    """Return the spec of the notebook's pod."""
    manifests = render_family_chart(chart, "nb", "team-a", values).manifests
    (found,) = [each.document for each in manifests if each.kind == "Deployment"]
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def list_mounts(pod: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    claims = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName", "") for each in pod["volumes"]}
    return {
        each["mountPath"]: (claims[each["name"]], each.get("subPath", ""), each.get("readOnly", False))
        for each in pod["containers"][0]["volumeMounts"]
    }


def test_runs_are_read_only_unless_they_are_to_be_written(chart: Path) -> None:
    assert list_mounts(find_pod(chart)) == {
        "/notebooks": ("", "", False),
        "/tmp": ("", "", False),
        "/runs/exp-7": ("exp-7-mnist-checkpoints", "", True),
        "/runs/exp-8": ("shared", "team/exp-8", True),
    }
    mounts = list_mounts(find_pod(chart, runs={**RUNS, "own": {"claim": "own", "writable": True}}, notebooksClaim="me"))
    assert mounts == {"/notebooks": ("me", "", False), "/tmp": ("", "", False), "/runs/own": ("own", "", False)}


@pytest.mark.parametrize("path", ["/a", "../other", "a/../../b", "a//b", ".", "a/.."])
def test_a_path_out_of_the_claim_is_refused(chart: Path, path: str) -> None:
    with pytest.raises(RenderError):
        find_pod(chart, runs={"exp-7": {"claim": "a", "path": path}})


@pytest.mark.parametrize("path", [".hidden", "a/..b", "...", "a b/c", "checkpoints"])
def test_a_path_within_the_claim_is_taken(chart: Path, path: str) -> None:
    mounts = list_mounts(find_pod(chart, runs={"exp-7": {"claim": "a", "path": path}}))
    assert mounts["/runs/exp-7"] == ("a", path, True)


def test_tensorboard_alone_needs_no_token(chart: Path) -> None:
    pod = find_pod(chart, jupyter=False, tokenSecret="")
    (container,) = pod["containers"]
    assert container["command"][:4] == ["python3", "-m", "tensorboard.main", "--logdir=/runs"]
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    assert list_mounts(pod) == list_mounts(find_pod(chart))
    assert "command" not in find_pod(chart)["containers"][0]


def test_jupyterlab_without_a_secret_is_refused(chart: Path) -> None:
    with pytest.raises(RenderError) as caught:
        find_pod(chart, tokenSecret="")
    assert "tokenSecret: name the Secret" in "".join(problem.message for problem in caught.value.problems)


def test_gpus_are_a_limit_beside_the_other_resources(chart: Path) -> None:
    (container,) = find_pod(chart, gpus=2, resources={"limits": {"memory": "8Gi"}})["containers"]
    assert container["resources"]["limits"] == {
        "cpu": "2",
        "memory": "8Gi",
        "ephemeral-storage": "3Gi",
        "nvidia.com/gpu": 2,
    }
    assert "nvidia.com/gpu" not in find_pod(chart)["containers"][0]["resources"]["limits"]


def test_the_token_comes_from_a_secret_that_must_be_named(chart: Path) -> None:
    (container,) = find_pod(chart, tokenSecret="mine")["containers"]
    assert container["env"][0]["valueFrom"] == {"secretKeyRef": {"name": "mine", "key": "token"}}
    with pytest.raises(RenderError) as refused:
        find_pod(chart, tokenSecret="")
    assert "tokenSecret" in str(refused.value.problems)
