"""How many steps to do at once: each call costs something, and a signal to stop is heard between two calls only."""

from __future__ import annotations

_CALL_SECONDS = 0.5


class Pace:
    """Finds out how many steps take half a second, unless the number is given."""

    def __init__(self, steps_per_call: int) -> None:
        self._is_given = steps_per_call > 0
        self.steps = steps_per_call or 1

    def learn(self, steps: int, seconds: float) -> None:
        """Take into account that the last call did `steps` steps in so many seconds."""
        if self._is_given:
            return
        # By no more than twice: a first call also builds what the others only run, and no call says much by itself.
        self.steps = max(1, min(2 * self.steps, int(steps * _CALL_SECONDS / max(seconds, 1e-6))))
