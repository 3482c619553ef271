"""The checkpoints of one folder, and what of them is whole: from the names there, sizes, markers and evaluations. Pure.

What a complete checkpoint is, and which one a training restores, trainchart_training.saving.catalogue decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainchart_training.saving import catalogue
from trainchart_training.saving.catalogue import Marker
from trainchart_training.saving.origin import Origin

COMPLETE = "complete"
DAMAGED = "damaged"
INCOMPLETE = "incomplete"
"""Without a marker: being written, or left by a process that was killed."""
NO_MARKER = "it has no marker: it is being written, or its writer was killed"
MOST_LISTED = 1000
"""Checkpoints of one folder that are looked at, the newest ones; a training keeps 20 by default."""


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, as far as names, sizes and its marker tell."""

    step: int
    problem: str = ""
    """What is wrong with it; empty where it is complete."""
    marker: Marker | None = None
    files: Mapping[str, int] = field(default_factory=dict)
    """Bytes of every regular file of it that is there, marker excluded."""
    written_at: float = 0.0
    metrics: Mapping[str, float | str] = field(default_factory=dict)
    """Of its evaluation; a number that is not finite is "NaN", "Infinity" or "-Infinity"."""

    @property
    def state(self) -> str:
        if not self.problem:
            return COMPLETE
        return INCOMPLETE if self.problem == NO_MARKER else DAMAGED

    @property
    def is_complete(self) -> bool:
        return not self.problem

    @property
    def size(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True)
class CheckpointList:
    """What a folder holds."""

    folder: str
    checkpoints: Sequence[Checkpoint]
    """The newest first."""
    origin: Origin | None = None
    problems: Sequence[str] = ()
    """What cannot be read beside the checkpoints: origin, evaluations."""
    omitted: int = 0
    """Older checkpoints, beyond MOST_LISTED, that were not looked at."""

    @property
    def latest(self) -> int | None:
        """The step that a restart takes, as far as sizes tell; None without a complete checkpoint."""
        return next((each.step for each in self.checkpoints if each.is_complete), None)

    def find(self, step: int) -> Checkpoint | None:
        return next((each for each in self.checkpoints if each.step == step), None)


def group_names(names: Iterable[str]) -> dict[int, list[str]]:
    """Return the names that are part of a checkpoint, by its step."""
    found: dict[int, list[str]] = {}
    for name in names:
        step = catalogue.find_step(name)
        if step is not None:
            found.setdefault(step, []).append(name)
    return found


def parse_evaluations(document: Any) -> dict[int, dict[str, float | str]]:
    """Return the results by step of a parsed evaluations.json. Raises ValueError where it is another document."""
    try:
        return {int(step): parse_metrics(metrics) for step, metrics in document.items()}
    except (AttributeError, TypeError, OverflowError) as error:
        raise ValueError("it does not hold results by step") from error


def parse_metrics(document: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the results of one evaluation. Raises ValueError for a result that is not a number."""
    return {str(name): _express(value) for name, value in document.items()}


def _express(value: Any) -> float | str:
    """Return a number of the file; its word where it is not finite. Raises ValueError for all else."""
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("it holds a result that is not a number")
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def find_surplus(kept_from: int, steps: Iterable[int]) -> list[int]:
    """Return which steps go when the oldest one that stays is `kept_from`, the oldest first."""
    return sorted(step for step in steps if step < kept_from)
