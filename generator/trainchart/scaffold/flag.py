"""One flag of a training script, as a reader found it, and how it becomes a hyperparameter. Pure.

The readers (argparse_flags.py, absl_flags.py, click_flags.py) know the libraries; nothing here does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from pydantic import ValidationError

from trainchart.secret_names import split_name
from trainchart.spec.document import LOST_TEXT
from trainchart.spec.model import HYPERPARAMETER_PATTERN, Hyperparameter
from trainchart_runtime.contract import hyperparameter_variable

FlagType = Literal["number", "integer", "string", "boolean"]
TYPES: Mapping[str, FlagType] = {"float": "number", "int": "integer", "str": "string", "bool": "boolean"}
"""Python's name of a type → the hyperparameter's."""
Form = Literal["value", "switch", "pair", "bool", "list", "repeated", "environment"]
_WORDS: Mapping[Form, tuple[str, ...]] = {
    "value": ("{option}=$({variable}{mark})",),
    "switch": ("{option}$({variable}+)",),
    "pair": ("{option}$({variable}+)", "{negative}$({variable}-)"),
    "bool": ("{option}=True$({variable}+)", "{option}=$({variable}-)"),
    "list": ("{option} $({variable}*)",),
    "repeated": ("{option}=$({variable}*)",),
    "environment": (),
}
"""Form of a flag → the words of the command that give it its value; docs/launcher.md explains the marks."""
_LONGEST_DESCRIPTION = 200
_NOT_STORABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


class NotReadableError(Exception):
    """A flag that cannot become a hyperparameter; the message says why, for the user."""


@dataclass(frozen=True)
class Flag:
    """A flag whose value an experiment can vary."""

    option: str
    """As typed on the command line: --learning_rate. A plain name where the program reads it from its environment."""
    hyperparameter: Hyperparameter
    form: Form = "value"
    """How the command line says the value; environment: it does not."""
    negative: str = ""
    """What says false, for the form "pair": --no-augment."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command that carry it."""
        mark = "?" if self.hyperparameter.default is None else ""
        names = {"option": self.option, "negative": self.negative, "mark": mark}
        variable = hyperparameter_variable(self.name)
        return tuple(word.format(variable=variable, **names) for word in _WORDS[self.form])

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
    kind: FlagType | None = None
    """Type of its one value, as far as that can be told; None for switches and lists."""
    default: Any = None
    """Its plain default, a PurePosixPath for any Path, None where it has none or computes it."""
    variable: str = ""
    """The variable of the environment that its default is read from."""
    separator: str = ""
    """What separates the items of a list on the command line: a comma, or a blank for any other form."""
    is_path: bool = False
    """Whether its type or its use is that of a path."""
    is_file: bool = False
    """Whether it opens the file that it names, so that no folder stands in for it."""
    is_download: bool = False
    """Whether the code gives it to Keras as the name of a file to download."""

    @property
    def is_readable(self) -> bool:
        """Whether it can become a hyperparameter."""
        return self._settings is not None

    @property
    def help_text(self) -> str:
        """Its help, as far as the flag can be read."""
        return self._settings.description if self._settings else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that it takes, empty where it takes any."""
        return tuple(self._settings.enum or ()) if self._settings else ()

    @cached_property
    def _settings(self) -> Hyperparameter | None:
        try:
            return self.read().hyperparameter
        except NotReadableError:
            return None


def make_flag(
    option: str,
    type_: FlagType,
    default: Any,
    description: Any,
    bounds: Mapping[str, Any],
    form: Form = "value",
    negative: str = "",
) -> Flag:
    """Return the flag as a hyperparameter; raises NotReadableError where it cannot be one.

    Without a default, the script decides until an experiment sets a value.
    """
    if not re.fullmatch(HYPERPARAMETER_PATTERN, to_camel_case(option)):
        raise NotReadableError("its name cannot be a hyperparameter's")
    if isinstance(default, float) and not math.isfinite(default):
        raise NotReadableError(f"its default is {default}")
    if not all(map(_is_storable, (default, *bounds.get("enum", ())))):
        raise NotReadableError("its default or one of its choices holds a control character")
    if any(isinstance(each, str) and LOST_TEXT in each for each in (default, *bounds.get("enum", ()))):
        raise NotReadableError(f"its default or one of its choices contains {LOST_TEXT}, which Helm removes")
    default = str(default) if isinstance(default, PurePosixPath) else default
    settings = {"type": type_, "default": default, "description": clean_text(description), **bounds}
    try:
        return Flag(option, Hyperparameter.model_validate(settings), form, negative)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise NotReadableError(str(first.get("ctx", {}).get("error", first["msg"]))) from error


def refuse(reason: str) -> Flag:
    """Raise NotReadableError, for flags that are known to be left to the script."""
    raise NotReadableError(reason)


NAMES_COMMAND = "code.command has to name"
"""What is told where a script has several commands and runs the one that its command line names."""
NEEDS_ONE = "the script does not start until code.command has"
"""What is told of flags one of which has to be given."""
POSITIONAL = "it is an argument without a flag"
"""What is told by its place only cannot be set by name."""


def explain_exclusive(options: Collection[str], is_required: bool) -> str:
    """Return what is told of flags that exclude each other, of which the script needs one where `is_required`."""
    reason = "it excludes others of its group"
    return f"{reason}, and {NEEDS_ONE} one of {', '.join(options)}" if is_required else reason


def to_camel_case(option: str) -> str:
    """Return the camelCase name of an option: --batch-size and --BATCH_SIZE become batchSize, --model.lr modelLr."""
    first, *rest = [word for word in re.split(r"[-_.]+", option.strip("-_.")) if word] or [""]
    if not rest and not first.isupper():
        return first[:1].lower() + first[1:]
    return first.lower() + "".join(word[:1].upper() + word[1:].lower() for word in rest)


def split_words(option: str) -> list[str]:
    """Return the words of an option in lower case: --logDir, --log-dir and --log_dir are log and dir."""
    return split_name(option) or [""]


def make_list(
    option: str, default: Any, description: Any, bounds: Mapping[str, Any], form: Form, separator: str = " "
) -> Flag:
    """Return a flag of several values: one text, its items apart by `separator`; empty leaves the flag away."""
    items = [] if default is None else default if isinstance(default, (list, tuple)) else [default]
    texts = [str(item) for item in items]
    if any(separator in text or not text for text in texts):
        raise NotReadableError("an item of its default is empty or contains a space or a comma")
    if bounds:
        description = f"{description} One of {', '.join(map(str, bounds.get('enum', ())))}.".strip()
    return make_flag(option, "string", separator.join(texts), description, {}, form)


def _is_storable(value: Any) -> bool:
    """Tell whether a chart's values can hold `value`: of the control characters, tab and newline only."""
    return not isinstance(value, str) or not _NOT_STORABLE.search(value)


def clean_text(text: Any) -> str:
    """Return a help text as one printable line."""
    if not isinstance(text, str):
        return ""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    line = line.replace(LOST_TEXT, "<no-value>")  # a spec with it is refused
    return line if len(line) <= _LONGEST_DESCRIPTION else line[: _LONGEST_DESCRIPTION - 1].rstrip() + "…"


def read_choices(choices: Any, type_: FlagType) -> Mapping[str, Any]:
    """Return the bounds that a list of allowed values stands for; raises NotReadableError where none do."""
    if type_ == "integer" and isinstance(choices, range) and choices and abs(choices.step) == 1:
        return {"minimum": min(choices[0], choices[-1]), "maximum": max(choices[0], choices[-1])}
    if type_ == "string" and isinstance(choices, list) and choices and all(isinstance(c, str) for c in choices):
        return {"enum": choices}
    raise NotReadableError("its choices cannot be written as bounds")


def read_bounds(lower: Any, upper: Any, *, is_open_below: bool = False, is_open_above: bool = False) -> dict[str, Any]:
    """Return the bounds of a range, None for a side without one; an open side leaves out its own limit."""
    limits = {
        "exclusiveMinimum" if is_open_below else "minimum": lower,
        "exclusiveMaximum" if is_open_above else "maximum": upper,
    }
    return {key: limit for key, limit in limits.items() if limit is not None}
