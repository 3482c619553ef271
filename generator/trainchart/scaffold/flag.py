"""One flag of a training script, as a reader found it, and how it becomes a hyperparameter. Pure.

The readers (argparse_flags.py, absl_flags.py, click_flags.py) know the libraries; nothing here does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from trainchart.spec.model import HYPERPARAMETER_PATTERN, Hyperparameter

FlagType = Literal["number", "integer", "string", "boolean"]
TYPES: Mapping[str, FlagType] = {"float": "number", "int": "integer", "str": "string", "bool": "boolean"}
"""Python's name of a type → the hyperparameter's."""
_LONGEST_DESCRIPTION = 200
_NOT_STORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class NotReadableError(Exception):
    """A flag that cannot become a hyperparameter; the message says why, for the user."""


@dataclass(frozen=True)
class Flag:
    """A flag that takes one value."""

    option: str
    """As typed on the command line: --learning_rate. A plain name where the program reads it from its environment."""
    hyperparameter: Hyperparameter

    @property
    def is_argument(self) -> bool:
        """Whether the command has to hold it."""
        return self.option.startswith("-")

    @property
    def name(self) -> str:
        """The hyperparameter's name: --learning_rate becomes learningRate."""
        return to_camel_case(self.option)


@dataclass(frozen=True)
class Declaration:
    """Where a script declares a flag; `read` returns it, or raises NotReadableError."""

    option: str
    """--learning_rate, or the plain name of an argument that has no flag."""
    line: int
    read: Callable[[], Flag]
    is_required: bool = False
    """Whether the script does not start without a value for it."""


def make_flag(option: str, type_: FlagType, default: Any, description: Any, bounds: Mapping[str, Any]) -> Flag:
    """Return the flag as a hyperparameter; raises NotReadableError where it cannot be one."""
    if default is None or default is ...:
        raise NotReadableError("it has no default")
    if not re.fullmatch(HYPERPARAMETER_PATTERN, to_camel_case(option)):
        raise NotReadableError("its name cannot be a hyperparameter's")
    if isinstance(default, float) and not math.isfinite(default):
        raise NotReadableError(f"its default is {default}")
    if not all(map(_is_storable, (default, *bounds.get("enum", ())))):
        raise NotReadableError("its default or one of its choices holds a control character")
    told = {"type": type_, "default": default, "description": clean_text(description), **bounds}
    try:
        return Flag(option, Hyperparameter.model_validate(told))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise NotReadableError(str(first.get("ctx", {}).get("error", first["msg"]))) from error


def refuse_positional() -> Flag:
    """Raise NotReadableError: what is told by its place only cannot be set by name."""
    raise NotReadableError("it is an argument without a flag")


def to_camel_case(option: str) -> str:
    """Return the camelCase name of an option: --batch-size and --BATCH_SIZE become batchSize."""
    first, *rest = [word for word in re.split(r"[-_.]+", option.strip("-_")) if word] or [""]
    if "_" not in option.strip("_") and "-" not in option.strip("-") and not first.isupper():
        return first[:1].lower() + first[1:]
    return first.lower() + "".join(word[:1].upper() + word[1:].lower() for word in rest)


def _is_storable(value: Any) -> bool:
    """Tell whether a chart's values can hold `value`: of the control characters, tab and newline only."""
    return not isinstance(value, str) or not _NOT_STORABLE.search(value)


def clean_text(text: Any) -> str:
    """Return a help text as one printable line."""
    if not isinstance(text, str):
        return ""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 1].rstrip() + "…"


def read_choices(choices: Any, type_: FlagType) -> Mapping[str, Any]:
    """Return the bounds that a list of allowed values stands for; raises NotReadableError where none do."""
    if type_ == "integer" and isinstance(choices, range) and choices and abs(choices.step) == 1:
        return {"minimum": min(choices[0], choices[-1]), "maximum": max(choices[0], choices[-1])}
    if type_ == "string" and isinstance(choices, list) and choices and all(isinstance(c, str) for c in choices):
        return {"enum": choices}
    raise NotReadableError("its choices cannot be written as bounds")
