"""The cluster description that a chart gives every training pod, and what follows from it.

Hosts, TF_CONFIG per strategy, which tasks a task has to reach, and whose end decides the run. Everything is
decided here once, so that launcher, local run and run controller cannot disagree.
NamedTuples, because importing `dataclasses` would delay every start of a training program.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Tuple

from trainchart_runtime.contract import ENVIRONMENT_STRING_LIMIT, TF_CONFIG

CHIEF = "chief"
WORKER = "worker"
PS = "ps"
EVALUATOR = "evaluator"
ROLES = (CHIEF, WORKER, PS, EVALUATOR)
"""All roles, in the order in which people read them."""
MAX_REPLICAS = 1000
"""Of one role. More tasks do not fit into TF_CONFIG, one environment string of at most 128 KiB."""

SINGLE = "single"
MIRRORED = "mirrored"
MULTI_WORKER_MIRRORED = "multi-worker-mirrored"
PARAMETER_SERVER = "parameter-server"
IN_GRAPH = "in-graph"
BETWEEN_GRAPH_ASYNC = "between-graph-async"
BETWEEN_GRAPH_SYNC = "between-graph-sync"

TASK_TYPES_BY_STRATEGY: Mapping[str, Tuple[str, ...]] = {
    SINGLE: (),
    MIRRORED: (),
    MULTI_WORKER_MIRRORED: (WORKER,),
    PARAMETER_SERVER: (CHIEF, WORKER, PS),
    IN_GRAPH: (CHIEF, WORKER, PS),
    BETWEEN_GRAPH_ASYNC: (WORKER, PS),
    BETWEEN_GRAPH_SYNC: (WORKER, PS),
}
"""The task types that TF_CONFIG's cluster holds. An evaluator is never among them: TensorFlow forbids it."""

_NEEDED_BY: Mapping[str, Mapping[str, Tuple[str, ...]]] = {
    # A coordinating chief opens no port, so no task can wait for it; ps and workers only answer.
    PARAMETER_SERVER: {CHIEF: (WORKER, PS)},
    IN_GRAPH: {CHIEF: (WORKER, PS)},
    MULTI_WORKER_MIRRORED: {WORKER: (WORKER,)},
    # With device filters a worker trains without the other workers.
    BETWEEN_GRAPH_ASYNC: {WORKER: (PS,)},
    BETWEEN_GRAPH_SYNC: {WORKER: (PS,)},
}


class ClusterDescriptionError(ValueError):
    """The cluster description, or a task's place in it, makes no sense."""


class Task(NamedTuple):
    """One process of the run in TensorFlow's words."""

    task_type: str
    task_index: int

    def __str__(self) -> str:
        return f"{self.task_type}-{self.task_index}"


class Role(NamedTuple):
    """One StatefulSet: its name and how many pods it has."""

    name: str
    replicas: int


class Cluster(NamedTuple):
    """The parsed cluster description of one release."""

    strategy: str
    service: str
    port: int
    status_port: int
    roles: Mapping[str, Role]

    def pod_name(self, task: Task) -> str:
        return f"{self.roles[task.task_type].name}-{task.task_index}"

    def address(self, task: Task, port: int) -> str:
        """Return "pod.service:port". The short form, since a chart cannot know the cluster domain."""
        return f"{self.pod_name(task)}.{self.service}:{port}"

    def tasks(self, task_type: str) -> Tuple[Task, ...]:
        role = self.roles.get(task_type)
        return tuple(Task(task_type, index) for index in range(role.replicas if role else 0))


def parse_cluster(text: str) -> Cluster:
    """Parse the cluster description; raises ClusterDescriptionError naming the first thing that is wrong."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise ClusterDescriptionError(f"the cluster description is not JSON: {err}") from err
    if not isinstance(document, dict):
        raise ClusterDescriptionError("the cluster description must be a JSON object")
    strategy = _field(document, "strategy", str, "the cluster description")
    if strategy not in TASK_TYPES_BY_STRATEGY:
        known = ", ".join(TASK_TYPES_BY_STRATEGY)
        raise ClusterDescriptionError(f"unknown strategy {strategy!r}; expected one of: {known}")
    roles = _field(document, "roles", dict, "the cluster description")
    return Cluster(
        strategy=strategy,
        service=_field(document, "service", str, "the cluster description"),
        port=_port(document, "port"),
        status_port=_port(document, "statusPort"),
        roles={name: _parse_role(name, role) for name, role in roles.items()},
    )


def parse_addresses(text: str) -> Dict[str, str]:
    """Parse the map from cluster addresses to the addresses used by a local run."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise ClusterDescriptionError(f"the address map is not JSON: {err}") from err
    if not isinstance(document, dict) or not all(isinstance(value, str) for value in document.values()):
        raise ClusterDescriptionError("the address map must be a JSON object of strings")
    return document


def check_task(cluster: Cluster, task: Task) -> None:
    """Raise ClusterDescriptionError unless `task` is one of the cluster's tasks."""
    role = cluster.roles.get(task.task_type)
    if role is None:
        known = ", ".join(cluster.roles)
        raise ClusterDescriptionError(f"task type {task.task_type!r} has no role; the cluster has: {known}")
    if not 0 <= task.task_index < role.replicas:
        raise ClusterDescriptionError(
            f"ordinal {task.task_index} is outside role {task.task_type!r} with {role.replicas} replicas"
        )


def hosts_by_task_type(cluster: Cluster, addresses: Mapping[str, str]) -> Dict[str, Tuple[str, ...]]:
    """Return "host:port" of every task in TF_CONFIG's cluster, mapped through `addresses` where listed."""
    hosts = {}
    for task_type in TASK_TYPES_BY_STRATEGY[cluster.strategy]:
        known = [cluster.address(task, cluster.port) for task in cluster.tasks(task_type)]
        if known:
            hosts[task_type] = tuple(addresses.get(host, host) for host in known)
    return hosts


def dump_tf_config(task: Task, hosts: Mapping[str, Tuple[str, ...]]) -> str:
    """Return TF_CONFIG for `task`, or "" where the strategy has no cluster.

    Raises ClusterDescriptionError where Linux would refuse to start a program with so long a variable.
    """
    if not hosts:
        return ""
    text = json.dumps(
        {"cluster": hosts, "task": {"type": task.task_type, "index": task.task_index}}, separators=(",", ":")
    )
    needed = len(TF_CONFIG) + len("=") + len(text.encode()) + 1
    if needed > ENVIRONMENT_STRING_LIMIT:
        tasks = sum(len(group) for group in hosts.values())
        raise ClusterDescriptionError(
            f"TF_CONFIG for {tasks} tasks needs {needed} bytes, but Linux allows {ENVIRONMENT_STRING_LIMIT} "
            "for one environment variable: use fewer replicas or a shorter release name"
        )
    return text


def needed_peers(cluster: Cluster, task: Task) -> Tuple[Task, ...]:
    """Return the tasks that must answer on their TensorFlow port before `task` can train."""
    needed = _NEEDED_BY.get(cluster.strategy, {}).get(task.task_type, ())
    return tuple(peer for task_type in needed for peer in cluster.tasks(task_type) if peer != task)


def deciding_tasks(cluster: Cluster) -> Tuple[Task, ...]:
    """Return the tasks that must all succeed for the run to succeed: chief, else worker-0, else all workers.

    multi-worker-mirrored needs all workers: each of them writes its part, and none may be cut short.
    """
    if cluster.tasks(CHIEF):
        return cluster.tasks(CHIEF)[:1]
    workers = cluster.tasks(WORKER)
    return workers if cluster.strategy == MULTI_WORKER_MIRRORED else workers[:1]


def tasks_to_outlive(cluster: Cluster, task: Task) -> Tuple[Task, ...]:
    """Return the tasks that may still save while `task` is stopped: those that decide, unless it is one of them."""
    deciding = deciding_tasks(cluster)
    return () if task in deciding else deciding


def _parse_role(name: str, role: Any) -> Role:
    where = f"role {name!r}"
    if not isinstance(role, dict):
        raise ClusterDescriptionError(f"{where} must be a JSON object")
    replicas = _field(role, "replicas", int, where)
    if replicas < 0:
        raise ClusterDescriptionError(f"{where}: replicas must not be negative, not {replicas}")
    if replicas > MAX_REPLICAS:
        raise ClusterDescriptionError(f"{where}: replicas must be at most {MAX_REPLICAS}, not {replicas}")
    return Role(_field(role, "name", str, where), replicas)


def _port(document: Mapping[str, Any], key: str) -> int:
    port: int = _field(document, key, int, "the cluster description")
    if not 0 < port < 65536:
        raise ClusterDescriptionError(f"{key} must be a port number, not {port}")
    return port


def _field(document: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = document.get(key)
    # bool is an int in Python, but true is no port and no replica number.
    if not isinstance(value, kind) or isinstance(value, bool) or value == "":
        raise ClusterDescriptionError(f"{where} needs {key!r} as {kind.__name__}, not {value!r}")
    return value
