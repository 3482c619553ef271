"""A process's place in the training, from the variables that the launcher sets."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_training.definition import Shard
from trainchart_training.errors import SettingsError
from trainchart_training.place import NEEDED, Place, read_place
from trainchart_training.saving.origin import Origin
from trainchart_training.saving.resume import Wish

CLUSTER = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
WORKERS = {"worker": ["a:1", "b:1"]}
EVERY_TYPE = "expected one of chief, worker, ps, evaluator"


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
            TRAINCHART_TENSORBOARD_DIR="/logs",
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


def test_evaluator_without_a_cluster_is_known_by_the_launcher() -> None:
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
def test_cluster_with_one_possible_strategy_needs_none_named(cluster: object, strategy: str) -> None:
    assert read_place(environment("", cluster, {"type": "worker", "index": 0})).strategy == strategy


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (environment("", CLUSTER), "TRAINCHART_STRATEGY is not set, and a cluster of worker, ps can be trained in"),
        (environment("horovod"), "TRAINCHART_STRATEGY: expected one of single, mirrored, "),
        (
            environment("parameter-server", {"chief": ["a:1"], "worker": ["b:1"]}),
            "TF_CONFIG: parameter-server needs a cluster with at least one ps",
        ),
        (
            environment("single", {"worker": ["a:1"]}, {"type": "boss"}),
            f"TF_CONFIG: task.type: {EVERY_TYPE}, got 'boss'",
        ),
        (
            environment("single", {"worker": ["a:1"]}, {"type": "worker", "index": "x"}),
            "TF_CONFIG: task.index: expected a whole number of at least 0, got 'x'",
        ),
        (
            environment("multi-worker-mirrored", {"worker": ["a:1"]}, TRAINCHART_CHECKPOINTS_DIR=""),
            "TRAINCHART_CHECKPOINTS_DIR is not set: all tasks need the same checkpoint folder",
        ),
        ({"TF_CONFIG": "{"}, "TF_CONFIG is not JSON"),
        (
            {"TRAINCHART_EVALUATORS": "one"},
            "TRAINCHART_EVALUATORS: expected a whole number of at least 0, got 'one'",
        ),
        ({"TASK_TYPE": "boss"}, f"TASK_TYPE: {EVERY_TYPE}, got 'boss'"),
        ({"TASK_INDEX": "-1"}, "TASK_INDEX: expected a whole number of at least 0, got '-1'"),
    ],
)
def test_impossible_places_are_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        read_place(variables)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cluster": []}, "cluster: expected an object with the hosts of each task type, got []"),
        ({"cluster": "a:1"}, "cluster: expected an object with the hosts of each task type, got 'a:1'"),
        ({"cluster": {"boss": ["a:1"]}}, "cluster: expected chief, worker, ps, evaluator, got 'boss'"),
        ({"cluster": {"worker": "a:1"}}, "cluster.worker: expected a list of hosts, got 'a:1'"),
        ({"cluster": {"worker": ["a:1", 1]}}, 'cluster.worker: expected "host:port", got 1'),
        ({"cluster": {"worker": ["a"]}}, "cluster.worker: expected \"host:port\", got 'a'"),
        ({"task": "worker"}, "task: expected an object with type and index, got 'worker'"),
        ({"task": []}, "task: expected an object with type and index, got []"),
        ({"task": {"type": ["x"]}}, f"task.type: {EVERY_TYPE}, got ['x']"),
        ({"task": {"type": False}}, f"task.type: {EVERY_TYPE}, got False"),
        ({"task": {"index": True}}, "task.index: expected a whole number of at least 0, got True"),
        ({"task": {"index": None}}, "task.index: expected a whole number of at least 0, got None"),
        ({"task": {"index": -1}}, "task.index: expected a whole number of at least 0, got -1"),
        ({"task": {"index": 0.5}}, "task.index: expected a whole number of at least 0, got 0.5"),
        ({"task": {"index": 1}}, "task.index: expected less than 1, the number of hosts of worker, got 1"),
        ({"task": {"type": "ps"}}, "cluster: expected hosts of ps, which this process is, got none"),
        (
            {"cluster": WORKERS, "task": {"type": "worker", "index": 2}},
            "task.index: expected less than 2, the number of hosts of worker, got 2",
        ),
        (
            {"cluster": WORKERS, "task": {"type": "chief", "index": 0}},
            "cluster: expected hosts of chief, which this process is, got worker",
        ),
    ],
)
def test_a_malformed_config_is_refused_in_one_line(config: object, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^TF_CONFIG: {re.escape(message)}$"):
        read_place({"TF_CONFIG": json.dumps(config), "TRAINCHART_CHECKPOINTS_DIR": "/c"})


@pytest.mark.parametrize(
    ("strategy", "cluster", "message"),
    [
        # With a chief of TensorFlow's own, there would be two that save.
        (
            "multi-worker-mirrored",
            {"chief": ["d:1"], **WORKERS},
            "multi-worker-mirrored has no chief, only worker, evaluator",
        ),
        (
            "between-graph-async",
            {"chief": ["d:1"], **CLUSTER},
            "between-graph-async has no chief, only worker, ps, evaluator",
        ),
        ("single", WORKERS, "single trains with one worker, got 2"),
        ("mirrored", CLUSTER, "mirrored has no ps, only worker, evaluator"),
    ],
)
def test_a_cluster_of_another_strategy_is_refused(strategy: str, cluster: object, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^TF_CONFIG: cluster: {re.escape(message)}$"):
        read_place(environment(strategy, cluster, {"type": "worker", "index": 0}))


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "-1", "soon"])
def test_a_grace_period_that_is_no_time_is_refused(text: str) -> None:
    message = f"^TRAINCHART_STOP_GRACE_SECONDS: expected a whole number of at least 0, got '{text}'$"
    with pytest.raises(SettingsError, match=message):
        read_place({"TRAINCHART_STOP_GRACE_SECONDS": text})


def test_index_may_be_quoted_and_an_evaluators_has_no_host() -> None:
    assert read_place(environment("multi-worker-mirrored", WORKERS, {"type": "worker", "index": "1"})).task_index == 1
    assert read_place(environment("multi-worker-mirrored", WORKERS, {"type": "evaluator", "index": 5})).task_index == 5


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["a:1", "worker", "ps"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
TYPES = st.sampled_from(["chief", "worker", "ps", "evaluator"])
HOSTS = st.lists(st.just("a:1") | LEAVES, max_size=3) | JSON
# Values of any kind would hardly ever get past the first check, so most have the right names.
CONFIGS = JSON | st.fixed_dictionaries(
    {},
    optional={
        "cluster": st.dictionaries(TYPES | st.text(), st.just(["a:1", "b:1"]) | HOSTS, max_size=4) | JSON,
        "task": st.fixed_dictionaries({}, optional={"type": TYPES | JSON, "index": st.integers(-1, 3) | JSON}) | JSON,
    },
)


@given(config=CONFIGS, strategy=st.sampled_from(["", *NEEDED]))
def test_any_json_gives_a_place_or_one_line_that_says_why_not(config: object, strategy: str) -> None:
    variables = {"TRAINCHART_STRATEGY": strategy, "TF_CONFIG": json.dumps(config), "TRAINCHART_CHECKPOINTS_DIR": "/c"}
    try:
        place = read_place(variables)
    except SettingsError as error:
        assert len(str(error).splitlines()) == 1
        return
    assert place.task_type == "evaluator" or 0 <= place.task_index < len(place.cluster.get(place.task_type, ["alone"]))
    assert all(type(host) is str for hosts in place.cluster.values() for host in hosts)


def test_every_strategy_of_a_spec_is_known() -> None:
    from trainchart_runtime.cluster import TASK_TYPES_BY_STRATEGY

    assert set(NEEDED) == set(TASK_TYPES_BY_STRATEGY)


def test_the_variables_are_those_of_the_contract() -> None:
    from trainchart_runtime import contract

    variables = {
        contract.STRATEGY: "single",
        contract.EVALUATORS: "1",
        contract.CHECKPOINTS_DIR: "/c",
        contract.TENSORBOARD_DIR: "/l",
        contract.PROGRESS_FILE: "/p",
        contract.STOP_GRACE_SECONDS: "9",
        contract.CLASSIC_TASK_TYPE: "evaluator",
        contract.CLASSIC_TASK_INDEX: "0",
        contract.MODEL: "mnist",
        contract.IMAGE: "mnist:1",
        contract.RELEASE: "exp-7",
        contract.NAMESPACE: "team-a",
        contract.RUN_ID: "second",
        contract.ATTEMPT: "2",
        contract.RESUME: "200",
        contract.RESUME_DIR: "/r",
        contract.RESUME_RELEASE: "exp-6",
    }
    origin = Origin("mnist", "", "mnist:1", "exp-7", "team-a", "second", 2)
    wish = Wish(200, "/r", "exp-6")
    assert read_place(variables) == Place("single", "evaluator", 0, {}, 1, "/c", "/l", "/p", 9, origin, wish)
