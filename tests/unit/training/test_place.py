"""A process's place in the training, from the variables that the launcher sets."""

from __future__ import annotations

import json
import re

import pytest

from trainchart_training.definition import Shard
from trainchart_training.errors import SettingsError
from trainchart_training.place import Place, read_place

CLUSTER = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}


def environment(strategy: str = "", cluster: object = None, task: object = None, **more: str) -> dict[str, str]:
    config = {"cluster": cluster, "task": task} if cluster else {}
    named = {"TRAINCHART_STRATEGY": strategy, "TF_CONFIG": json.dumps(config), "TRAINCHART_CHECKPOINTS_DIR": "/c"}
    return {**named, **more}


def test_alone_nothing_needs_to_be_set() -> None:
    assert read_place({}) == Place(strategy="single", task_type="worker", task_index=0)
    assert read_place({}).is_leader


def test_everything_is_read() -> None:
    place = read_place(
        environment(
            "between-graph-async",
            CLUSTER,
            {"type": "worker", "index": 1},
            TRAINCHART_EVALUATORS="1",
            TRAINCHART_LOG_DIR="/logs",
            TRAINCHART_PROGRESS_FILE="/progress.json",
            TRAINCHART_STOP_GRACE_SECONDS="12",
        )
    )
    assert place == Place("between-graph-async", "worker", 1, CLUSTER, 1, "/c", "/logs", "/progress.json", 12)
    assert (str(place), place.workers) == ("worker 1", 2)


@pytest.mark.parametrize(
    ("strategy", "cluster", "task", "leads"),
    [
        ("parameter-server", {"chief": ["d:1"], **CLUSTER}, {"type": "chief", "index": 0}, True),
        ("parameter-server", {"chief": ["d:1"], **CLUSTER}, {"type": "worker", "index": 0}, False),
        ("in-graph", {"chief": ["d:1"], "worker": ["a:1"]}, {"type": "chief", "index": 0}, True),
        ("between-graph-sync", CLUSTER, {"type": "worker", "index": 0}, True),
        ("between-graph-sync", CLUSTER, {"type": "worker", "index": 1}, False),
        ("between-graph-sync", CLUSTER, {"type": "ps", "index": 0}, False),
        ("multi-worker-mirrored", {"worker": ["a:1", "b:1"]}, {"type": "worker", "index": 0}, True),
    ],
)
def test_one_process_leads(strategy: str, cluster: object, task: object, leads: bool) -> None:
    assert read_place(environment(strategy, cluster, task)).is_leader is leads


def test_an_evaluator_without_a_cluster_is_known_by_the_launchers_word() -> None:
    place = read_place(environment("single", TASK_TYPE="evaluator", TASK_INDEX="0"))
    assert (place.task_type, place.is_leader) == ("evaluator", False)


@pytest.mark.parametrize(
    ("strategy", "cluster", "task", "shards"),
    [
        ("single", None, None, [Shard(0, 1)]),
        ("parameter-server", {"chief": ["d:1"], **CLUSTER}, {"type": "chief", "index": 0}, [Shard(0, 1)]),
        ("in-graph", {"chief": ["d:1"], **CLUSTER}, {"type": "chief", "index": 0}, [Shard(0, 2), Shard(1, 2)]),
        ("between-graph-sync", CLUSTER, {"type": "worker", "index": 0}, [Shard(0, 2)]),
        ("multi-worker-mirrored", {"worker": ["a:1", "b:1", "e:1"]}, {"type": "worker", "index": 2}, [Shard(2, 3)]),
    ],
)
def test_a_process_looks_at_its_own_examples(strategy: str, cluster: object, task: object, shards: object) -> None:
    assert read_place(environment(strategy, cluster, task)).shards == shards


@pytest.mark.parametrize(
    ("cluster", "strategy"),
    [
        ({"chief": ["d:1"], **CLUSTER}, "parameter-server"),
        ({"worker": ["a:1", "b:1"]}, "multi-worker-mirrored"),
    ],
)
def test_a_cluster_that_can_be_trained_in_one_way_only_needs_no_strategy(cluster: object, strategy: str) -> None:
    assert read_place(environment("", cluster, {"type": "worker", "index": 0})).strategy == strategy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (environment("", CLUSTER), "TRAINCHART_STRATEGY is not set, and a cluster of worker, ps can be trained in"),
        (environment("horovod"), "TRAINCHART_STRATEGY: expected one of single, mirrored, "),
        (
            environment("parameter-server", {"chief": ["a:1"], "worker": ["b:1"]}),
            "TF_CONFIG: parameter-server needs a cluster with at least one ps",
        ),
        (
            environment("single", {"worker": ["a:1"]}, {"type": "boss"}),
            "TF_CONFIG: the task type is chief, worker, ps or evaluator, not 'boss'",
        ),
        (
            environment("single", {"worker": ["a:1"]}, {"type": "worker", "index": "x"}),
            "TF_CONFIG: the task index is a whole number, not 'x'",
        ),
        (
            environment("multi-worker-mirrored", {"worker": ["a:1"]}, TRAINCHART_CHECKPOINTS_DIR=""),
            "TRAINCHART_CHECKPOINTS_DIR is not set: all tasks need the same checkpoint folder",
        ),
        ({"TF_CONFIG": "{"}, "TF_CONFIG is not JSON"),
        ({"TRAINCHART_EVALUATORS": "one"}, "TRAINCHART_EVALUATORS: expected a whole number, got 'one'"),
    ],
)
def test_impossible_places_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        read_place(given)


def test_every_strategy_of_a_spec_is_known() -> None:
    from trainchart_runtime.cluster import TASK_TYPES_BY_STRATEGY
    from trainchart_training.place import NEEDED

    assert set(NEEDED) == set(TASK_TYPES_BY_STRATEGY)


def test_the_variables_are_those_of_the_contract() -> None:
    from trainchart_runtime import contract

    given = {
        contract.STRATEGY: "single",
        contract.EVALUATORS: "1",
        contract.CHECKPOINTS_DIR: "/c",
        contract.LOG_DIR: "/l",
        contract.PROGRESS_FILE: "/p",
        contract.STOP_GRACE_SECONDS: "9",
        contract.CLASSIC_TASK_TYPE: "evaluator",
        contract.CLASSIC_TASK_INDEX: "0",
    }
    assert read_place(given) == Place("single", "evaluator", 0, {}, 1, "/c", "/l", "/p", 9)
