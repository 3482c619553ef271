"""Reads the hyperparameters that a program takes from its environment: TRAINCHART_HP_LEARNING_RATE and so on. Pure.

They need no word of the command, as those of the training library (library_settings.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from trainchart.scaffold.flag import TYPES, Declaration, Flag, FlagType, NotReadableError, make_flag, to_camel_case
from trainchart.scaffold.python_literal import Constants, environment_variable, read_value, type_name
from trainchart_runtime.contract import HYPERPARAMETER_PREFIX


def find_environment_reads(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield a declaration for each variable of a hyperparameter that the program reads, the first reading of each."""
    casts = {
        id(call.args[0]): TYPES[type_name(call.func)]
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and len(call.args) == 1 and type_name(call.func) in TYPES
    }
    seen: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Call, ast.Subscript)):
            continue
        variable = environment_variable(node)
        name = to_camel_case(variable.removeprefix(HYPERPARAMETER_PREFIX).lower())
        if not variable.startswith(HYPERPARAMETER_PREFIX) or name in seen:
            continue
        seen.add(name)
        given = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
        read = partial(_read, name, casts.get(id(node)), given, constants)
        yield Declaration(name, node.lineno, read, isinstance(node, ast.Subscript))


def _read(name: str, kind: FlagType | None, given: ast.expr | None, constants: Constants) -> Flag:
    default = None if given is None else read_value(given, constants)
    kind = kind or TYPES.get(type(default).__name__, "string")
    if isinstance(default, str) and kind in ("integer", "number"):
        try:
            default = int(default) if kind == "integer" else float(default)
        except ValueError as error:
            raise NotReadableError(f"its default {default!r} is not of its type, {kind}") from error
    return make_flag(name, kind, default, "", {}, "environment")
