"""Hosts, TF_CONFIG, needed peers and deciding tasks for every strategy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime.cluster import (
    TASK_TYPES_BY_STRATEGY,
    ClusterDescriptionError,
    Role,
    Task,
    check_task,
    deciding_tasks,
    dump_tf_config,
    hosts_by_task_type,
    needed_peers,
    parse_addresses,
    parse_cluster,
)
from trainchart_runtime.contract import ENVIRONMENT_STRING_LIMIT


def describe(strategy, **replicas):
    roles = {role: {"name": f"exp-{role}", "replicas": number} for role, number in replicas.items()}
    document = {"strategy": strategy, "service": "exp", "port": 2222, "statusPort": 2223, "roles": roles}
    return parse_cluster(json.dumps(document))


PS_CLUSTER = {
    "chief": ["exp-chief-0.exp:2222"],
    "worker": ["exp-worker-0.exp:2222", "exp-worker-1.exp:2222"],
    "ps": ["exp-ps-0.exp:2222"],
}
WITHOUT_CHIEF = {name: PS_CLUSTER[name] for name in ("worker", "ps")}


@pytest.mark.parametrize(
    ("strategy", "replicas", "expected"),
    [
        ("single", {"worker": 1}, None),
        ("mirrored", {"chief": 1}, None),
        ("multi-worker-mirrored", {"worker": 2, "evaluator": 1}, {"worker": PS_CLUSTER["worker"]}),
        ("parameter-server", {"ps": 1, "worker": 2, "chief": 1, "evaluator": 1}, PS_CLUSTER),
        ("in-graph", {"chief": 1, "worker": 2, "ps": 1}, PS_CLUSTER),
        ("between-graph-async", {"worker": 2, "ps": 1}, WITHOUT_CHIEF),
        ("between-graph-sync", {"worker": 2, "ps": 1, "evaluator": 1}, WITHOUT_CHIEF),
    ],
)
def test_tf_config_per_strategy(strategy, replicas, expected):
    cluster = describe(strategy, **replicas)
    for role in replicas:
        text = dump_tf_config(Task(role, 0), hosts_by_task_type(cluster, {}))
        if expected is None:
            assert text == ""
        else:
            assert json.loads(text) == {"cluster": expected, "task": {"type": role, "index": 0}}


def test_every_strategy_is_in_the_table_above():
    assert len(TASK_TYPES_BY_STRATEGY) == 7
    assert all("evaluator" not in types for types in TASK_TYPES_BY_STRATEGY.values())


def test_addresses_of_a_local_run_replace_only_what_they_list():
    cluster = describe("multi-worker-mirrored", worker=2)
    addresses = parse_addresses('{"exp-worker-1.exp:2222": "127.0.0.1:5001", "exp-worker-1.exp:2223": "x:1"}')
    assert hosts_by_task_type(cluster, addresses) == {"worker": ("exp-worker-0.exp:2222", "127.0.0.1:5001")}


def test_tf_config_fails_exactly_where_linux_would_refuse_it():
    def text_for(name_length):
        cluster = describe("multi-worker-mirrored", worker=1)
        cluster = cluster._replace(roles={"worker": Role("x" * name_length, 1)})
        return dump_tf_config(Task("worker", 0), hosts_by_task_type(cluster, {}))

    fixed = len("TF_CONFIG=") + len(text_for(1)) - 1 + 1
    longest = ENVIRONMENT_STRING_LIMIT - fixed
    assert len("TF_CONFIG=" + text_for(longest)) + 1 == ENVIRONMENT_STRING_LIMIT
    with pytest.raises(ClusterDescriptionError, match=r"131073 bytes.*fewer replicas"):
        text_for(longest + 1)


@pytest.mark.parametrize(
    ("strategy", "task", "expected"),
    [
        ("parameter-server", Task("chief", 0), "worker-0 worker-1 ps-0"),
        ("parameter-server", Task("worker", 0), ""),
        ("parameter-server", Task("ps", 0), ""),
        ("parameter-server", Task("evaluator", 0), ""),
        ("in-graph", Task("chief", 0), "worker-0 worker-1 ps-0"),
        ("multi-worker-mirrored", Task("worker", 1), "worker-0"),
        ("between-graph-async", Task("worker", 1), "ps-0"),
        ("between-graph-sync", Task("worker", 0), "ps-0"),
        ("between-graph-sync", Task("ps", 0), ""),
        ("single", Task("worker", 0), ""),
    ],
)
def test_needed_peers(strategy, task, expected):
    cluster = describe(strategy, chief=1, worker=2, ps=1, evaluator=1)
    assert " ".join(map(str, needed_peers(cluster, task))) == expected


@pytest.mark.parametrize(
    ("strategy", "replicas", "expected"),
    [
        ("parameter-server", {"worker": 2, "chief": 1, "ps": 1}, "chief-0"),
        ("between-graph-async", {"worker": 2, "ps": 1}, "worker-0"),
        ("multi-worker-mirrored", {"worker": 3, "evaluator": 1}, "worker-0 worker-1 worker-2"),
        ("single", {"worker": 1}, "worker-0"),
        ("single", {"chief": 1}, "chief-0"),
    ],
)
def test_deciding_tasks(strategy, replicas, expected):
    assert " ".join(map(str, deciding_tasks(describe(strategy, **replicas)))) == expected


GOOD = {
    "strategy": "single",
    "service": "s",
    "port": 1,
    "statusPort": 2,
    "roles": {"worker": {"name": "w", "replicas": 1}},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "mesh"}, "unknown strategy 'mesh'; expected one of: single"),
        ({"service": ""}, "needs 'service' as str, not ''"),
        ({"port": "2222"}, "needs 'port' as int, not '2222'"),
        ({"port": True}, "needs 'port' as int, not True"),
        ({"statusPort": 70000}, "statusPort must be a port number, not 70000"),
        ({"roles": []}, "needs 'roles' as dict"),
        ({"roles": {"ps": 3}}, "role 'ps' must be a JSON object"),
        ({"roles": {"ps": {"name": "p"}}}, "role 'ps' needs 'replicas' as int, not None"),
        ({"roles": {"ps": {"name": "p", "replicas": -1}}}, "must not be negative"),
        ({"roles": {"ps": {"name": "p", "replicas": 1001}}}, "replicas must be at most 1000, not 1001"),
    ],
)
def test_a_wrong_description_names_the_field_and_its_value(change, message):
    with pytest.raises(ClusterDescriptionError, match=message.replace("(", r"\(")):
        parse_cluster(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_text_that_is_no_description_is_refused(text):
    with pytest.raises(ClusterDescriptionError):
        parse_cluster(text)
    with pytest.raises(ClusterDescriptionError):
        parse_addresses(text)


@pytest.mark.parametrize(("task", "message"), [(Task("worker", 2), "ordinal 2 is outside"), (Task("ps", 0), "no role")])
def test_a_task_outside_the_cluster_is_refused(task, message):
    cluster = describe("multi-worker-mirrored", worker=2)
    check_task(cluster, Task("worker", 1))
    with pytest.raises(ClusterDescriptionError, match=message):
        check_task(cluster, task)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner))
)
def test_any_json_parses_or_is_refused(document):
    try:
        parse_cluster(json.dumps(document))
    except ClusterDescriptionError:
        return
    raise AssertionError("hypothesis does not invent whole descriptions")
