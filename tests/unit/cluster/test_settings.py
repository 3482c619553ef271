"""What the objects of a release say that its run was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import GPU, NAMESPACE, NOW, make_labels, make_metadata, make_sets
from trainchart.cluster.settings import find_settings
from trainchart.cluster.snapshot import Snapshot, find_trainings
from trainchart.reports.report import TrainingKey
from trainchart.reports.run_settings import RoleSettings, RunSettings

KEY = TrainingKey(NAMESPACE, "exp1", "mnist")


def make_config(name: str, text: str) -> dict[str, Any]:
    return {
        "metadata": make_metadata(name, make_labels("training")),
        "data": {"hyperparameters.json": text},
    }


def mount(each: dict[str, Any], *names: str) -> None:
    sources = [{"configMap": {"name": name}} for name in names]
    each["spec"]["template"]["spec"]["volumes"] = [{"name": "config", "projected": {"sources": sources}}]


def look(*config_maps: dict[str, Any]) -> RunSettings:
    sets = make_sets()
    for each in sets:
        mount(each, "exp1-mnist-cluster-1", "exp1-mnist-hyperparameters-2")
        each["spec"]["template"]["spec"]["containers"][0] |= {
            "image": "registry.example.com/ml/mnist:1.0.0",
            "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", GPU: "1"}},
        }
    return find_settings(find_trainings(Snapshot(NOW, sets=tuple(sets), records=config_maps))[KEY])


def test_settings_of_a_release_come_from_its_objects() -> None:
    settings = look(make_config("exp1-mnist-hyperparameters-2", '{"learningRate": 0.1, "apiToken": "s3cret"}'))
    assert list(settings.roles) == ["chief", "worker", "ps"]
    image = "registry.example.com/ml/mnist:1.0.0"
    assert settings.roles["worker"] == RoleSettings(2, image, "2", "8Gi", f"1 {GPU}")
    assert settings.strategy == "parameter-server"
    assert settings.hyperparameters == {"learningRate": 0.1, "apiToken": "***"}
    assert settings.values is None


def test_config_map_that_no_set_mounts_says_nothing() -> None:
    earlier = make_config("exp1-mnist-hyperparameters-1", '{"learningRate": 0.5}')
    assert look(earlier).hyperparameters is None
    current = make_config("exp1-mnist-hyperparameters-2", '{"learningRate": 0.1}')
    assert look(earlier, current).hyperparameters == {"learningRate": 0.1}


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[" * 10000])
def test_damaged_hyperparameters_are_not_known(text: str) -> None:
    assert look(make_config("exp1-mnist-hyperparameters-2", text)).hyperparameters is None


ODD_PODS: list[Any] = [
    None,
    5,
    "x",
    [],
    {"containers": 5},
    {"containers": [5]},
    {"containers": [{"name": "training", "resources": 5}]},
    {"containers": [{"name": "training", "resources": {"limits": [], "requests": 5}}]},
]


@pytest.mark.parametrize("odd", ODD_PODS)
def test_odd_sets_break_nothing(odd: Any) -> None:
    sets = make_sets()
    for each in sets:
        each["spec"]["template"]["spec"] = json.loads(json.dumps(odd))
        each["metadata"]["annotations"]["trainchart/replicas"] = "many"
    settings = find_settings(Snapshot(NOW, sets=tuple(sets)))
    assert settings.roles["worker"] == RoleSettings(0)
