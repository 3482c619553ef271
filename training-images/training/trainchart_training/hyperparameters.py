"""Hyperparameters: one JSON object, read into a frozen dataclass and checked against it.

Pure. A program adds its own by deriving from Hyperparameters; names are camelCase outside and snake_case inside.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from trainchart_training.errors import SettingsError

Wanted = TypeVar("Wanted")
MINIMUM = "minimum"
"""Key of a field's metadata: the least number that is allowed."""
CHOICES = "choices"
"""Key of a field's metadata: the texts that are allowed."""
_GREATEST: Mapping[type, float] = {int: 2**63 - 1, float: sys.float_info.max}
"""Beyond, TensorFlow has no number of that kind."""
AUTO, FALL, RISE = "auto", "min", "max"
"""What a metric should do, in Keras' words."""


def _at_least(minimum: float, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={MINIMUM: minimum})


@dataclass(frozen=True)
class Hyperparameters:
    """What an experiment can vary in every training. Derive from it to add what the model needs."""

    max_steps: int = _at_least(1, 1000)
    """Training ends after so many updates of the weights."""
    batch_size: int = _at_least(1, 64)
    """Examples of one replica (a worker, or one GPU of it) in one step."""
    checkpoint_steps: int = _at_least(1, 200)
    """Steps between two checkpoints."""
    log_steps: int = _at_least(1, 50)
    """Steps between two lines of the log and points of TensorBoard's curves."""
    histogram_steps: int = _at_least(0, 0)
    """Steps between two histograms of all weights and of the gradients of one batch; 0 writes none."""
    log_device_placement: bool = False
    """Say where every variable lies, and let TensorFlow say where every operation runs."""
    steps_per_call: int = _at_least(0, 0)
    """Steps between two looks at whether the training must stop, more of them cost a little less; 0 finds out how
    many take half a second. Under parameter-server, steps given to a worker at once; 0 gives ten."""
    keep_checkpoints: int = _at_least(1, 20)
    """More than one, so that there is one to fall back to, and so that a slow evaluator finds those it is late for."""
    seed: int = _at_least(0, 1)
    """Starting weights, and the order of the examples wherever one process reads them."""
    shuffle_buffer: int = _at_least(0, 10_000)
    """Examples held in memory to be mixed; 0 leaves the order as it is."""
    clip_norm: float = _at_least(0, 0.0)
    """Shorten gradients whose norm, over all weights together, is greater; 0 leaves them as they are."""
    backup_workers: int = _at_least(0, 0)
    """between-graph-sync: a step does not wait for the slowest workers, so many of them."""
    early_stop_evaluations: int = _at_least(0, 0)
    """End when so many evaluations in a row were no better than the best one before; 0 trains to the last step."""
    early_stop_metric: str = "loss"
    """What "better" looks at: the loss, or a metric by its name."""
    early_stop_mode: str = dataclasses.field(default=AUTO, metadata={CHOICES: (AUTO, FALL, RISE)})
    """Whether lower (min) or higher (max) is better. auto: as Keras knows of its own metrics."""


def parse_hyperparameters(text: str, wanted: type[Wanted]) -> Wanted:
    """Return dataclass `wanted`, its defaults overridden by the JSON object in `text`; raise SettingsError."""
    if inspect.get_annotations(wanted) and "__dataclass_fields__" not in vars(wanted):
        raise SettingsError(f"class {wanted.__name__} is not itself a dataclass: put @dataclass(frozen=True) above it")
    hints = get_type_hints(wanted)
    known = {camel_case(item.name): item for item in dataclasses.fields(wanted)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in parse_object(text, "TRAINCHART_HYPERPARAMETERS").items():
        if name not in known:
            raise SettingsError(f"hyperparameter {name!r} is not known; use one of {', '.join(known)}")
        field = known[name]
        values[field.name] = _check(name, value, hints[field.name], field.metadata)
    try:
        return wanted(**values)
    except (TypeError, ValueError) as error:
        # The class checks its fields itself, in __post_init__.
        raise SettingsError(f"hyperparameters: {error}") from error


def parse_object(text: str, variable: str) -> dict[str, Any]:
    """Return the JSON object in `text`, empty for no text; `variable` is where it came from."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{variable} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{variable}: expected a JSON object, got {value!r:.80}")
    return value


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_KINDS: Mapping[type, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    str: ("a string", (str,)),
}


def _check(name: str, value: Any, kind: Any, metadata: Mapping[Any, Any]) -> Any:
    """Return `value` as a `kind`; kinds other than bool, int, float and str are the program's own business."""
    if kind not in _KINDS:
        return value
    words, accepted = _KINDS[kind]
    minimum, choices = metadata.get(MINIMUM), metadata.get(CHOICES)
    # bool is an int in Python, but true is no number of steps.
    is_right = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
    if is_right and kind in (int, float):
        is_right = abs(value) <= _GREATEST[kind] and (minimum is None or value >= minimum)
    if choices:
        words, is_right = f"one of {', '.join(choices)}", value in choices
    if not is_right:
        least = "" if minimum is None else f" of at least {minimum}"
        raise SettingsError(f"hyperparameter {name}: expected {words}{least}, got {value!r:.80}")
    return kind(value)
