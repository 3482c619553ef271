"""Reads `parser.add_argument(…)` of argparse. Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from trainchart.scaffold.flag import (
    TYPES,
    Declaration,
    Flag,
    NotReadableError,
    make_flag,
    read_choices,
    refuse_positional,
)
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, type_name


def find_argparse(tree: ast.Module, constants: Constants, program: str) -> Iterator[Declaration]:
    """Yield every argument of the script, in its order; `program` is what `%(prog)s` stands for in help texts."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if called_name(call) == "ArgumentParser":
            program = Arguments(call, constants).text("prog", 0) or program
    for call in calls:
        if called_name(call) == "add_argument":
            names = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
            options = [name for name in names if isinstance(name, str) and name.startswith("-")]
            arguments = Arguments(call, constants)
            if options:
                option = next((name for name in options if name.startswith("--")), options[0])
                read = partial(_read, option, arguments, program)
                yield Declaration(option, call.lineno, read, is_required=arguments.is_true("required"))
            elif names and isinstance(names[0], str) and names[0]:
                may_be_missing = arguments.text("nargs") in ("?", "*", "...")
                yield Declaration(names[0], call.lineno, refuse_positional, is_required=not may_be_missing)


def _read(option: str, arguments: Arguments, program: str) -> Flag:
    if arguments.is_open:
        raise NotReadableError("its settings come from a * or ** expression")
    if not option.startswith("--"):
        raise NotReadableError("it has no long form")
    action = arguments.node("action")
    if action is not None and arguments.text("action") != "store":
        raise NotReadableError("it is a switch that takes no value")
    if arguments.node("nargs") is not None:
        raise NotReadableError("it takes several values")
    default = arguments.value("default")
    type_node = arguments.node("type")
    given = type_name(type_node) or "str"
    if type_node is None and default is not None and not isinstance(default, str):
        raise NotReadableError("it has no type=, so its value would arrive as text")
    if given == "bool":
        raise NotReadableError("type=bool takes every text for true, 'false' included")
    if given not in TYPES or (type_node is not None and not isinstance(type_node, ast.Name)):
        raise NotReadableError("its type= is not float, int or str")
    kind = TYPES[given]
    choices: Any = arguments.value("choices")
    bounds = {} if choices is None else read_choices(choices, kind)
    told = {"default": default, "type": given, "choices": choices, "prog": program}
    return make_flag(option, kind, default, _expand(arguments.text("help"), told), bounds)


def _expand(text: str, told: Mapping[str, Any]) -> str:
    """Return a help text as argparse prints it: %(default)s and its like filled in, and %% a percent sign."""
    choices = told["choices"]
    filled = {**told, "choices": ", ".join(map(str, choices))} if choices is not None else told
    try:
        return text % filled
    except (KeyError, TypeError, ValueError):
        return text  # argparse would fail on it, or it names what only running tells.
