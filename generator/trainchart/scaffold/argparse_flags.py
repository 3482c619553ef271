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
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, read_value, type_name


def find_argparse(tree: ast.Module, constants: Constants, program: str) -> Iterator[Declaration]:
    """Yield every argument of the script, in its order; `program` is what `%(prog)s` stands for in help texts."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if called_name(call) == "ArgumentParser":
            program = Arguments(call, constants).text("prog", 0) or program
    commands = set(_find_commands(tree))
    for call in calls:
        if called_name(call) == "add_argument":
            names, is_computed = _read_names(call, constants)
            options = [name for name in names if isinstance(name, str) and name.startswith("-")]
            arguments = Arguments(call, constants)
            if is_computed:
                yield Declaration(ast.unparse(call.args[0]), call.lineno, _refuse_computed)
            elif options and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in commands:
                yield Declaration(options[-1], call.lineno, _refuse_command)
            elif options:
                option = next((name for name in options if name.startswith("--")), options[0])
                read = partial(_read, option, arguments, program)
                yield Declaration(option, call.lineno, read, is_required=arguments.is_true("required"))
            elif names and isinstance(names[0], str) and names[0]:
                may_be_missing = arguments.text("nargs") in ("?", "*", "...")
                yield Declaration(names[0], call.lineno, refuse_positional, is_required=not may_be_missing)


def _find_commands(tree: ast.Module) -> Iterator[str]:
    """Yield the names of parsers of subcommands: what `add_parser(…)` of argparse is assigned to."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and called_name(node.value) == "add_parser"
        ):
            yield from map(ast.unparse, node.targets)


def _read_names(call: ast.Call, constants: Constants) -> tuple[list[Any], bool]:
    """Return the names that `add_argument` is given, and whether some can only be told by running the script."""
    try:
        return [read_value(argument, constants) for argument in call.args], False
    except NotReadableError:
        return [], True


def _refuse_computed() -> Flag:
    raise NotReadableError("its name is computed when the script runs")


def _refuse_command() -> Flag:
    raise NotReadableError("it belongs to a subcommand, which the command in the spec would have to name")


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
    if isinstance(choices, range):
        told = {**told, "choices": str(choices)}  # It may have more numbers than anybody can read.
    elif choices is not None:
        told = {**told, "choices": ", ".join(map(str, choices))}
    try:
        return text % told
    except (KeyError, TypeError, ValueError):
        return text  # argparse would fail on it, or it names what only running tells.
