"""Everything the program is told from outside, read once from the environment and frozen.

Pure: no TensorFlow here, so that a wrong setting is refused in milliseconds and not after a slow import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mnist.hyperparameters import SettingsError, parse_hyperparameters, parse_object


@dataclass(frozen=True)
class Hyperparameters:
    """What an experiment varies. The names in the environment are the same in camelCase."""

    learning_rate: float = 0.05
    max_steps: int = 1000
    """Training ends after so many batches, all workers together."""
    batch_size: int = 64
    """Digits per step, on one worker."""
    checkpoint_steps: int = 200
    log_steps: int = 50
    """Steps between two log lines; also how long a stop may have to wait for a good moment to save."""
    seed: int = 1
    """Starting weights. The order of the digits is random in every worker, so runs still differ a little."""


@dataclass(frozen=True)
class Task:
    """The part this process plays in the cluster; `type` is TensorFlow's word for the role."""

    type: str = "chief"
    index: int = 0
    cluster: Mapping[str, Any] = field(default_factory=dict)
    """TF_CONFIG's cluster; empty when no other process computes with this one."""

    @property
    def is_distributed(self) -> bool:
        return bool(self.cluster)


@dataclass(frozen=True)
class Settings:
    task: Task
    hyperparameters: Hyperparameters
    checkpoints_dir: str
    """Shared by all tasks: the ps write their share of every checkpoint, the evaluator reads it. May be empty alone."""
    log_dir: str
    progress_file: str
    """Where to report progress; empty when nobody listens."""
    stop_grace_seconds: int
    """Time between SIGTERM and SIGKILL."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings that `environment` asks for; raise SettingsError for the first wrong one."""
    task = parse_task(environment.get("TF_CONFIG", ""))
    checkpoints_dir = environment.get("TRAINCHART_CHECKPOINTS_DIR", "")
    if not checkpoints_dir and (task.is_distributed or task.type == "evaluator"):
        raise SettingsError("TRAINCHART_CHECKPOINTS_DIR is not set: all tasks need the same checkpoint folder")
    return Settings(
        task=task,
        hyperparameters=parse_hyperparameters(environment.get("TRAINCHART_HYPERPARAMETERS", ""), Hyperparameters),
        checkpoints_dir=checkpoints_dir,
        log_dir=environment.get("TRAINCHART_LOG_DIR", ""),
        progress_file=environment.get("TRAINCHART_PROGRESS_FILE", ""),
        stop_grace_seconds=int(environment.get("TRAINCHART_STOP_GRACE_SECONDS") or 30),
    )


def parse_task(text: str) -> Task:
    """Return the task that TF_CONFIG describes; without one the process is a chief that trains alone."""
    config = parse_object(text, "TF_CONFIG")
    cluster, task = config.get("cluster", {}), config.get("task", {})
    task_type = task.get("type", "chief")
    if task_type in ("worker", "ps") and "ps" not in cluster:
        raise SettingsError(f"TF_CONFIG: a {task_type} needs a cluster with at least one ps")
    if task_type not in ("chief", "worker", "ps", "evaluator"):
        raise SettingsError(f"TF_CONFIG: the task type is chief, worker, ps or evaluator, not {task_type!r}")
    return Task(type=task_type, index=int(task.get("index", 0)), cluster=cluster if "ps" in cluster else {})
