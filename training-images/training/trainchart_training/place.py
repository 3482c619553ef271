"""This process's place in the training, from the environment that the launcher sets: read once, and frozen.

Pure: no TensorFlow here, so that a wrong setting is refused before anything slow begins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainchart_training.definition import Shard
from trainchart_training.errors import SettingsError
from trainchart_training.hyperparameters import parse_object
from trainchart_training.saving.origin import UNKNOWN, Origin, read_environment
from trainchart_training.saving.resume import Wish, read_wish

CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"

SINGLE = "single"
MIRRORED = "mirrored"
MULTI_WORKER_MIRRORED = "multi-worker-mirrored"
PARAMETER_SERVER = "parameter-server"
IN_GRAPH = "in-graph"
BETWEEN_GRAPH_ASYNC = "between-graph-async"
BETWEEN_GRAPH_SYNC = "between-graph-sync"

NEEDED: Mapping[str, tuple[str, ...]] = {
    SINGLE: (),
    MIRRORED: (),
    MULTI_WORKER_MIRRORED: (WORKER,),
    PARAMETER_SERVER: (CHIEF, WORKER, PS),
    IN_GRAPH: (CHIEF, WORKER),
    BETWEEN_GRAPH_ASYNC: (WORKER, PS),
    BETWEEN_GRAPH_SYNC: (WORKER, PS),
}
"""The task types without which a strategy cannot train."""
_POSSIBLE: Mapping[str, tuple[str, ...]] = {SINGLE: (WORKER,), MIRRORED: (WORKER,), IN_GRAPH: (PS,)}
"""Further ones that it can have, beside an evaluator."""

_TASK_TYPES = (CHIEF, WORKER, PS, EVALUATOR)
_HOST = re.compile(r"\S+:[0-9]+")
_INDEX = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class Place:
    """Who this process is, who else there is, and where things go."""

    strategy: str = SINGLE
    task_type: str = WORKER
    task_index: int = 0
    cluster: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """TF_CONFIG's cluster: "host:port" of every task; empty when no other process computes with this one."""
    evaluators: int = 0
    """Evaluators of this training: without one, the leader evaluates at the end."""
    checkpoints_dir: str = ""
    """Shared by all tasks; empty when a process that trains alone was given none."""
    log_dir: str = ""
    progress_file: str = ""
    """Where to report progress; empty when nothing reads it."""
    stop_grace_seconds: int = 30
    """Time between SIGTERM and SIGKILL."""
    origin: Origin = UNKNOWN
    """What a checkpoint folder that this process begins will say of it, beside the strategy."""
    resume: Wish | None = None
    """How a new run begins; None where the environment does not say, and whatever lies there is gone on from."""

    def __str__(self) -> str:
        return f"{self.task_type} {self.task_index}"

    @property
    def is_leader(self) -> bool:
        """Whether this process saves: the chief, or worker 0 where the strategy has none."""
        return self.task_type == CHIEF or (self.task_type == WORKER and self.task_index == 0 and not self.has_chief)

    @property
    def has_chief(self) -> bool:
        return CHIEF in NEEDED[self.strategy]

    @property
    def shards(self) -> list[Shard]:
        """The parts of the examples that this process looks at before it begins.

        A chief computes with none itself. In-graph it reads those of every worker.
        """
        if self.strategy == IN_GRAPH:
            return [Shard(index, self.workers) for index in range(self.workers)]
        return [Shard(0, 1) if self.task_type == CHIEF else Shard(self.task_index, self.workers)]

    @property
    def workers(self) -> int:
        return len(self.cluster.get(WORKER, ())) or 1


def read_place(environment: Mapping[str, str]) -> Place:
    """Return the place that `environment` gives this process; raise SettingsError for the first thing wrong."""
    config = parse_object(environment.get("TF_CONFIG", ""), "TF_CONFIG")
    cluster = _read_cluster(config)
    strategy = environment.get("TRAINCHART_STRATEGY", "") or _guess_strategy(cluster)
    if strategy not in NEEDED:
        raise SettingsError(f"TRAINCHART_STRATEGY: expected one of {', '.join(NEEDED)}, got {strategy!r}")
    task_type, task_index = _read_task(config, environment, strategy)
    place = Place(
        strategy=strategy,
        task_type=task_type,
        task_index=task_index,
        cluster=cluster,
        evaluators=_whole_number(environment, "TRAINCHART_EVALUATORS", 0),
        checkpoints_dir=environment.get("TRAINCHART_CHECKPOINTS_DIR", ""),
        log_dir=environment.get("TRAINCHART_TENSORBOARD_DIR", ""),
        progress_file=environment.get("TRAINCHART_PROGRESS_FILE", ""),
        stop_grace_seconds=_whole_number(environment, "TRAINCHART_STOP_GRACE_SECONDS", 30),
        origin=read_environment(environment),
        resume=read_wish(environment),
    )
    _check_roles(place)
    return place


def _read_cluster(config: Mapping[str, Any]) -> dict[str, list[str]]:
    cluster = config.get("cluster")
    if cluster is None:
        return {}
    if not isinstance(cluster, dict):
        raise SettingsError(
            f"TF_CONFIG: cluster: expected an object with the hosts of each task type, got {_show(cluster)}"
        )
    for task_type, hosts in cluster.items():
        if task_type not in _TASK_TYPES:
            raise SettingsError(f"TF_CONFIG: cluster: expected {', '.join(_TASK_TYPES)}, got {_show(task_type)}")
        if not isinstance(hosts, list):
            raise SettingsError(f"TF_CONFIG: cluster.{task_type}: expected a list of hosts, got {_show(hosts)}")
        for host in hosts:
            if not isinstance(host, str) or not _HOST.fullmatch(host):
                raise SettingsError(f'TF_CONFIG: cluster.{task_type}: expected "host:port", got {_show(host)}')
    return cluster


def _guess_strategy(cluster: Mapping[str, Any]) -> str:
    """Return the strategy of a cluster that was not started by a launcher, where there is but one."""
    if not cluster:
        return SINGLE
    if CHIEF in cluster and PS in cluster:
        return PARAMETER_SERVER
    if set(cluster) == {WORKER}:
        return MULTI_WORKER_MIRRORED
    raise SettingsError(
        f"TRAINCHART_STRATEGY is not set, and a cluster of {', '.join(cluster)} can be trained in several ways;"
        f" set it to one of {', '.join(NEEDED)}"
    )


def _read_task(config: Mapping[str, Any], environment: Mapping[str, str], strategy: str) -> tuple[str, int]:
    task = config.get("task")
    if task is None:
        task = {}
    if not isinstance(task, dict):
        raise SettingsError(f"TF_CONFIG: task: expected an object with type and index, got {_show(task)}")
    variable, task_type = "TF_CONFIG: task.type", task.get("type")
    if task_type in (None, ""):
        variable, task_type = "TASK_TYPE", environment.get("TASK_TYPE") or _default_type(strategy)
    if task_type not in _TASK_TYPES:
        raise SettingsError(f"{variable}: expected one of {', '.join(_TASK_TYPES)}, got {_show(task_type)}")
    if "index" in task:
        return task_type, _parse_index(task["index"], "TF_CONFIG: task.index")
    return task_type, _parse_index(environment.get("TASK_INDEX") or 0, "TASK_INDEX")


def _default_type(strategy: str) -> str:
    return CHIEF if CHIEF in NEEDED[strategy] else WORKER


def _parse_index(value: Any, variable: str) -> int:
    # TensorFlow takes digits in quotes, too. bool is an int in Python, but true is no index.
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _INDEX.fullmatch(text):
        raise SettingsError(f"{variable}: expected a whole number of at least 0, got {_show(value)}")
    return int(text)


def _check_roles(place: Place) -> None:
    known = (*NEEDED[place.strategy], *_POSSIBLE.get(place.strategy, ()), EVALUATOR)
    strange = [role for role, hosts in place.cluster.items() if hosts and role not in known]
    if strange:
        raise SettingsError(f"TF_CONFIG: cluster: {place.strategy} has no {strange[0]}, only {', '.join(known)}")
    if place.strategy in (SINGLE, MIRRORED) and place.workers > 1:
        raise SettingsError(f"TF_CONFIG: cluster: {place.strategy} trains with one worker, got {place.workers}")
    if place.task_type != EVALUATOR:
        for role in NEEDED[place.strategy]:
            if not place.cluster.get(role):
                raise SettingsError(f"TF_CONFIG: {place.strategy} needs a cluster with at least one {role}")
        _check_index(place)
    if not place.checkpoints_dir and (place.cluster or place.task_type == EVALUATOR):
        raise SettingsError("TRAINCHART_CHECKPOINTS_DIR is not set: all tasks need the same checkpoint folder")


def _check_index(place: Place) -> None:
    """Raise SettingsError unless this process is one of the cluster's, or alone."""
    alone = 0 if place.task_type == PS else 1
    hosts = len(place.cluster.get(place.task_type, ())) if place.cluster else alone
    if not hosts:
        raise SettingsError(
            f"TF_CONFIG: cluster: expected hosts of {place.task_type}, which this process is, got"
            f" {', '.join(place.cluster) or 'none'}"
        )
    if place.task_index >= hosts:
        raise SettingsError(
            f"TF_CONFIG: task.index: expected less than {hosts}, the number of hosts of {place.task_type},"
            f" got {place.task_index}"
        )


def _whole_number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer() or number < 0:
        raise SettingsError(f"{name}: expected a whole number of at least 0, got {_show(text)}")
    return int(number)


def _show(value: object) -> str:
    """Return `value` for an error message of one line, cut short."""
    return f"{value!r:.80}"
