"""Everything the program is told from outside, read once from the environment and frozen."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from digits.hyperparameters import parse_hyperparameters


@dataclass(frozen=True)
class Hyperparameters:
    """What an experiment varies. The names in the environment are the same in camelCase."""

    learning_rate: float = 0.001
    epochs: int = 15
    batch_size: int = 64
    seed: int = 1
    """Starting weights and order of the digits."""


@dataclass(frozen=True)
class Settings:
    hyperparameters: Hyperparameters
    checkpoints_dir: str
    log_dir: str
    progress_file: str
    """Where to report progress; empty when nothing reads it."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings that `environment` asks for; raise SettingsError for the first wrong one."""
    hyperparameters = parse_hyperparameters(environment.get("TRAINCHART_HYPERPARAMETERS", ""), Hyperparameters)
    checkpoints_dir = environment.get("TRAINCHART_CHECKPOINTS_DIR") or tempfile.mkdtemp(prefix="digits-")
    return Settings(
        hyperparameters=hyperparameters,
        checkpoints_dir=checkpoints_dir,
        log_dir=environment.get("TRAINCHART_TENSORBOARD_DIR") or f"{checkpoints_dir}/logs",
        progress_file=environment.get("TRAINCHART_PROGRESS_FILE", ""),
    )
