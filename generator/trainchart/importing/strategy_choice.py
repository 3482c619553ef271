"""Which strategy a training of another tool is: its roles show it in part, and the rest is said to the user. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainchart_runtime.cluster import CHIEF, PS, WORKER

_SYNC = re.compile(r"--?(issync|sync_replicas|sync)(=(1|true|True))?")


@dataclass(frozen=True)
class StrategyChoice:
    """A strategy, and what the roles of the input cannot tell about it."""

    name: str
    doubt: str = ""


@dataclass(frozen=True)
class Evidence:
    """What the input shows of how a program is distributed."""

    replicas: Mapping[str, int]
    gpus: int
    """GPUs of the pod that leads."""
    words: tuple[str, ...]
    """The program's command."""
    has_place_flags: bool
    tensorflow: str
    """Version of TensorFlow in the image; empty where it is not known."""


def choose_strategy(evidence: Evidence) -> StrategyChoice:
    """Return the strategy that the roles of a training show."""
    counts = evidence.replicas
    computing = counts.get(WORKER, 0) + counts.get(CHIEF, 0)
    if counts.get(PS, 0):
        return _with_ps(evidence)
    if computing > 1:
        return StrategyChoice(
            "multi-worker-mirrored",
            f"{computing} workers without ps train with MultiWorkerMirroredStrategy, or each trains a copy of its own: "
            "for a program without tf.distribute choose single",
        )
    if evidence.gpus > 1:
        return StrategyChoice(
            "mirrored", f"one pod with {evidence.gpus} GPUs uses all of them only through MirroredStrategy"
        )
    return StrategyChoice("single")


def _with_ps(evidence: Evidence) -> StrategyChoice:
    is_old = evidence.tensorflow.startswith(("0.", "1."))
    is_sync = any(_SYNC.fullmatch(word) for word in evidence.words)
    classic = "between-graph-sync" if is_sync else "between-graph-async"
    has_both = evidence.replicas.get(CHIEF, 0) and evidence.replicas.get(WORKER, 0)
    if has_both and not is_old and not evidence.has_place_flags and not is_sync:
        return StrategyChoice(
            "parameter-server",
            "a chief, workers and ps run ParameterServerStrategy of TensorFlow 2, or a program of TensorFlow 1 "
            "(replica_device_setter, Estimator) in which each worker trains by itself: for that one choose "
            "between-graph-async",
        )
    doubt = (
        "workers and ps run a program in which each worker trains by itself (replica_device_setter), or "
        "ParameterServerStrategy of TensorFlow 2: for that one choose parameter-server, which adds a chief"
    )
    return StrategyChoice(classic, "" if is_old and is_sync else doubt)
