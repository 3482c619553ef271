"""What the leader's loop needs of a strategy: steps that are run somewhere, and a state that can be saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trainchart_training.saving.state import TrainingState


class Runner(Protocol):
    """One strategy at work. `step` and `state` are those of the whole training."""

    state: TrainingState
    """What is saved and restored; kept up to date by begin() and collect()."""
    examples_per_step: int

    @property
    def step(self) -> int:
        """Updates of the weights so far."""

    @property
    def is_stopping(self) -> bool:
        """Whether all processes that act together have agreed to stop."""

    def begin(self) -> bool:
        """Start from `state`, which was restored or is new.

        Where the training has gone on meanwhile, bring `state` up to date instead and return True.
        """

    def run(self, steps: int) -> float:
        """Do `steps` steps and return their mean loss, NaN without one; may return early when asked to stop."""

    def collect(self) -> None:
        """Bring `state` up to date."""

    def devices(self) -> Sequence[str]:
        """Return where each of the state's saved variables lies while it is trained."""

    def agree(self, is_wanted: bool) -> bool:
        """Return whether any process that acts together with this one wants it; all must call this alike."""


_kept: list[object] = []


def keep_to_the_end(thing: object) -> None:
    """Keep `thing` until the process ends, as train() ends it: without a look at what there is to free."""
    _kept.append(thing)
