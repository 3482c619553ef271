"""What verifying and pruning a folder of checkpoints comes to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verified:
    """What a verification has found."""

    folder: str
    problems: Mapping[int, str]
    """Step → what is wrong with it, "" where nothing is; the newest first, and only those that were read."""
    restart: int | None
    """The step that a restart takes; None where none can be read."""
    has_markers: bool
    """Whether there is any checkpoint: without one, a restart starts over."""


@dataclass(frozen=True)
class Pruning:
    """What a pruning removes."""

    folder: str
    kept: Sequence[int]
    removed: Sequence[int]
    size: int
    """Bytes that become free."""
