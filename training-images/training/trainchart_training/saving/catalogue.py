"""Which checkpoints are complete, which model they belong to, and which may go. Pure.

Beside the files of a checkpoint lies a marker, `ckpt-<step>.json`, written last: a checkpoint without it is
half-written or not ours. The marker knows the size of every file and the shape of every variable.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_MARKER = re.compile(r"ckpt-(0|[1-9][0-9]*)\.json")
_PART = re.compile(r"ckpt-(0|[1-9][0-9]*)[._]")
LAST = "last"
"""Ending of a training that reached its last step."""
EARLY = "early"
"""Ending of a training that got no better before that."""
STALLED = "stalled"
"""To be EARLY as soon as the result is exported: a task that restores this has nothing more to train."""


_ENDINGS = {ending: ending for ending in ("", LAST, EARLY, STALLED)}
_NUMBERS_LIMIT = 2**63
_VALUES_LIMIT = 500_000
_MOST_DIMENSIONS = 254
"""TensorFlow's own limit, tf.TensorShape."""


class VariableShape(NamedTuple):
    """One variable of model or optimizer, as far as two models can differ in it."""

    name: str
    """For people; automatic names are numbered, so it is not compared."""
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Marker:
    """What the marker of a complete checkpoint says."""

    step: int
    variables: Sequence[VariableShape]
    files: Mapping[str, int]
    """Bytes of every file of the checkpoint, by its name."""
    ending: str = ""
    """LAST or EARLY once the training has ended here, its result exported; a later one may want more steps.

    STALLED while it is about to.
    """

    def is_last(self, max_steps: int, may_stop_early: bool) -> bool:
        """Whether a training of `max_steps`, which may end before them or not, has ended here."""
        if self.ending not in (LAST, EARLY):
            return False
        return self.step >= max_steps or (self.ending == EARLY and may_stop_early)


def prefix(step: int) -> str:
    return f"ckpt-{step}"


def marker_name(step: int) -> str:
    return f"{prefix(step)}.json"


def find_steps(names: Iterable[str]) -> list[int]:
    """Return the steps that have a marker among the files `names`, the newest first."""
    return sorted((int(match[1]) for match in map(_MARKER.fullmatch, names) if match), reverse=True)


def find_expired(steps: Iterable[int], keep: int) -> list[int]:
    """Return which of `steps` may go when the newest `keep` stay."""
    return sorted(steps, reverse=True)[keep:]


def belongs_to(name: str, step: int) -> bool:
    """Say whether the file or folder `name` is part of the checkpoint of `step`, its marker and left-overs included."""
    return find_step(name) == step


def find_step(name: str) -> int | None:
    """Return the step of the checkpoint that the file or folder `name` is part of, None where it is part of none."""
    match = _PART.match(name)
    return int(match[1]) if match else None


def dump_marker(marker: Marker) -> str:
    return json.dumps(
        {
            "step": marker.step,
            "ending": marker.ending,
            "files": dict(marker.files),
            "variables": [[item.name, item.dtype, list(item.shape)] for item in marker.variables],
        },
        indent=1,
    )


def parse_marker(text: str) -> Marker:
    """Return the marker in `text`; raise ValueError where it is none."""
    if sum(map(text.count, ",[{")) > _VALUES_LIMIT:
        raise ValueError("a marker of too many values")  # whose objects would take hundreds of megabytes
    try:
        body = json.loads(text)
        return Marker(
            step=_parse_whole(body["step"]),
            ending=_ENDINGS[body["ending"]],
            files={str(name): _parse_whole(size) for name, size in body["files"].items()},
            variables=[_parse_variable(*variable) for variable in body["variables"]],
        )
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not a checkpoint's marker: {error}") from error


def _parse_whole(value: Any) -> int:
    number = int(value)
    if not 0 <= number < _NUMBERS_LIMIT:
        raise ValueError("a number of more than 63 bits")
    return number


def _parse_variable(name: object, dtype: object, shape: Sequence[object]) -> VariableShape:
    sizes = [size for size in shape[:_MOST_DIMENSIONS] if isinstance(size, int) and abs(size) < _NUMBERS_LIMIT]
    if not isinstance(name, str) or not isinstance(dtype, str) or sizes != list(shape):
        raise ValueError(f"not a variable with type and shape: {name!r:.80}")
    return VariableShape(name, dtype, tuple(sizes))


def find_damage(marker: Marker, sizes: Mapping[str, int]) -> str:
    """Return what is wrong with a checkpoint whose folder holds files of these `sizes`, or ""."""
    for name, size in marker.files.items():
        if name not in sizes:
            return f"{name} is missing"
        if sizes[name] != size:
            return f"{name} has {sizes[name]} bytes instead of {size}"
    return ""


def find_difference(here: Sequence[VariableShape], there: Sequence[VariableShape]) -> str:
    """Return the first difference between the variables of the model here and of a checkpoint, or ""."""
    for mine, theirs in zip(here, there, strict=False):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return f"{mine.name} is {_describe(mine)} here, {theirs.name} {_describe(theirs)} there"
    if len(here) != len(there):
        return f"there are {len(here)} variables here and {len(there)} there"
    return ""


def has_stalled(evaluations: Mapping[int, Mapping[str, float]], metric: str, patience: int, falls: bool) -> bool:
    """Say whether the last `patience` evaluations (by step) were no better than the best one before them.

    Better is less of a `metric` that `falls`, and more of others; nothing is worse than NaN.
    """
    values = [evaluations[step][metric] for step in sorted(evaluations) if metric in evaluations[step]]
    if patience == 0 or len(values) <= patience:
        return False
    sign = 1 if falls else -1
    losses = [math.inf if math.isnan(value) else sign * value for value in values]
    return min(losses[-patience:]) >= min(losses[:-patience])


def _describe(item: VariableShape) -> str:
    return f"{item.dtype} {list(item.shape)}"
