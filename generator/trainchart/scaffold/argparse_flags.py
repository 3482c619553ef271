"""Reads `parser.add_argument(…)` of argparse. Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from trainchart.scaffold.flag import TYPES, Declaration, Flag, NotReadableError, make_flag, read_choices
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, type_name


def find_argparse(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield every optional argument of the script, in its order; positional ones cannot be set by a flag."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) == "add_argument":
            names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            options = [name for name in names if isinstance(name, str) and name.startswith("-")]
            if options:
                option = next((name for name in options if name.startswith("--")), options[0])
                yield Declaration(option, node.lineno, partial(_read, option, Arguments(node, constants)))


def _read(option: str, arguments: Arguments) -> Flag:
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
    return make_flag(option, kind, default, arguments.text("help"), bounds)
