"""The values with which a notebook shows the volumes of releases."""

from __future__ import annotations

import re
from typing import Any

import pytest

from trainchart.checkpoints.release_volume import ReleaseVolume
from trainchart.errors import Conflict
from trainchart.families.notebook_values import ShownVolume, make_values

TEMPLATE: dict[str, Any] = {
    "spec": {
        "containers": [{"name": "training", "image": "r/mnist:1"}],
        "imagePullSecrets": [{"name": "registry"}],
        "securityContext": {"runAsUser": 4711, "fsGroup": 4711},
        "tolerations": [{"key": "gpu"}],
        "nodeSelector": {"zone": "a"},
        "affinity": {"nodeAffinity": {"own": True}, "podAntiAffinity": {}},
    }
}


def show(name: str = "exp", *, node: str = "", path: str = "", template: dict[str, Any] = TEMPLATE) -> ShownVolume:
    return ShownVolume(name, ReleaseVolume(name, "team", f"{name}-logs", path, "logs", "", template), node)


def test_the_pod_is_like_those_whose_files_it_reads() -> None:
    values = make_values([show(path="/a/"), show("other")], "r/mnist:1")
    assert values["runs"] == {"exp": {"claim": "exp-logs", "path": "a"}, "other": {"claim": "other-logs"}}
    assert values["image"] == {"repository": "r/mnist", "tag": "1", "digest": "", "pullSecrets": ["registry"]}
    assert (values["user"], values["nodeSelector"], values["tolerations"]) == (4711, {"zone": "a"}, [{"key": "gpu"}])
    assert values["affinity"] == {"nodeAffinity": {"own": True}}
    assert (values["jupyter"], values["tokenSecret"]) == (False, "")


def test_without_a_template_the_chart_decides() -> None:
    values = make_values([show(template={})], "", token_secret="nb-1")
    assert values == {"jupyter": True, "tokenSecret": "nb-1", "runs": {"exp": {"claim": "exp-logs"}}}


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("mnist", ("mnist", "", "")),
        ("r.example:5000/ml/mnist", ("r.example:5000/ml/mnist", "", "")),
        ("r.example:5000/ml/mnist:2", ("r.example:5000/ml/mnist", "2", "")),
        ("r/m:2@sha256:" + "a" * 64, ("r/m", "2", "sha256:" + "a" * 64)),
        ("r/m@sha256:" + "a" * 64, ("r/m", "", "sha256:" + "a" * 64)),
    ],
)
def test_an_image_is_named_as_the_chart_does(image: str, parts: tuple[str, str, str]) -> None:
    values = make_values([show()], image)["image"]
    assert (values["repository"], values["tag"], values["digest"]) == parts


def test_a_volume_in_use_on_one_node_draws_the_pod_there() -> None:
    values = make_values([show(node="n1"), show("other"), show("third", node="n1")], "")
    (term,) = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}


def test_volumes_on_two_nodes_are_refused() -> None:
    with pytest.raises(Conflict, match="both exp and other: one is in use on n1, one on n2"):
        make_values([show(node="n1"), show("other", node="n2")], "")


NAME = "a" * 53


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["team.exp", "team-exp"], ["team-exp", "team-exp-2"]),
        (["exp/mnist", "exp/mnist-checkpoints"], ["exp-mnist", "exp-mnist-checkpoints"]),
        ([f"{NAME}/mnist", f"{NAME}/mnist-checkpoints"], [f"{NAME}-mnist", f"{NAME}-mni-2"]),
        ([f"{NAME}/{NAME}"] * 2, [f"{NAME}-aaaaa", f"{NAME}-aaa-2"]),
    ],
)
def test_each_volume_has_a_folder_of_its_own(names: list[str], keys: list[str]) -> None:
    runs = make_values([show(name) for name in names], "")["runs"]
    assert [*runs] == keys
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,57}[a-z0-9])?", key) for key in runs)
