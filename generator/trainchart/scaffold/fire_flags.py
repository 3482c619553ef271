"""Reads the functions that Fire makes a command line of: fire.Fire(train). Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from trainchart.scaffold.flag import TYPES, Declaration, Flag, NotReadableError, make_flag
from trainchart.scaffold.python_literal import Constants, called_name, read_value, type_name


def find_fire(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield the parameters of the function that the script hands to Fire."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_name(node) == "Fire":
            function = functions.get(type_name(node.args[0])) if node.args else None
            if function is None:
                yield Declaration("fire.Fire", node.lineno, _refuse)
            else:
                yield from _find_parameters(function, constants)


def _refuse() -> Flag:
    raise NotReadableError("it takes no single function of this file, so code.command has to name what runs")


def _find_parameters(function: ast.FunctionDef, constants: Constants) -> Iterator[Declaration]:
    arguments = [*function.args.posonlyargs, *function.args.args]
    missing: list[ast.expr | None] = [None] * (len(arguments) - len(function.args.defaults))
    defaults = [*missing, *function.args.defaults, *function.args.kw_defaults]
    for parameter, node in zip([*arguments, *function.args.kwonlyargs], defaults, strict=True):
        try:
            default = None if node is None else read_value(node, constants)
        except NotReadableError:
            default = None
        given = type_name(parameter.annotation) or (type(default).__name__ if default is not None else "str")
        option = f"--{parameter.arg}"
        read = partial(_read, option, given, default)
        kind, separator = TYPES.get(given, "string"), " " if isinstance(default, list) else ""
        yield Declaration(option, parameter.lineno, read, node is None, kind, default, separator=separator)


def _read(option: str, given: str, default: Any) -> Flag:
    if given == "bool":
        return make_flag(option, "boolean", default, "", {}, "pair", f"--no{option[2:]}")
    # Fire reads every value as Python does: a list is one text to it.
    if isinstance(default, list) or given not in TYPES:
        return make_flag(option, "string", None if default is None else str(default).replace(" ", ""), "", {})
    return make_flag(option, TYPES[given], default, "", {})
