"""Reads `flags.DEFINE_float(…)` and its kin of absl, and of TensorFlow's old tf.app.flags. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from trainchart.scaffold.flag import Declaration, Flag, FlagType, NotReadableError, make_flag, read_choices
from trainchart.scaffold.python_literal import Arguments, Constants, called_name

_TYPES: Mapping[str, FlagType] = {
    "DEFINE_float": "number",
    "DEFINE_integer": "integer",
    "DEFINE_string": "string",
    "DEFINE_enum": "string",
    "DEFINE_bool": "boolean",
    "DEFINE_boolean": "boolean",
}


def find_absl(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield every flag that the script defines, in its order."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    marked = {name for call in calls for name in _marked(call, constants)}
    for call in calls:
        if called_name(call).startswith("DEFINE_"):
            arguments = Arguments(call, constants)
            name = arguments.text("name", 0)
            if name:
                read = partial(_read, f"--{name}", called_name(call), arguments)
                is_required = name in marked or arguments.is_true("required")
                yield Declaration(f"--{name}", call.lineno, read, is_required)


def _marked(call: ast.Call, constants: Constants) -> Iterator[str]:
    """Yield the flags that `flags.mark_flag_as_required("name")` and its plural are called for."""
    arguments = Arguments(call, constants)
    if called_name(call) == "mark_flag_as_required":
        yield arguments.text("flag_name", 0)
    elif called_name(call) == "mark_flags_as_required":
        try:
            names = arguments.value("flag_names", 0)
        except NotReadableError:
            return
        yield from (name for name in names or () if isinstance(name, str))


def _read(option: str, function: str, arguments: Arguments) -> Flag:
    kind = _TYPES.get(function)
    if kind is None or arguments.is_open:
        raise NotReadableError(f"{function} is not read")
    default: Any = arguments.value("default", 1)
    if function == "DEFINE_enum":
        bounds = read_choices(arguments.value("enum_values", 2), kind)
        return make_flag(option, kind, default, arguments.text("help", 3), bounds)
    limits = {"minimum": arguments.value("lower_bound"), "maximum": arguments.value("upper_bound")}
    bounds = {key: limit for key, limit in limits.items() if limit is not None}
    return make_flag(option, kind, default, arguments.text("help", 2), bounds)
