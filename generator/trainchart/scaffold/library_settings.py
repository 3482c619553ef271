"""Reads the hyperparameters of a program of the training library: a class derived from Hyperparameters. Pure.

They reach the program by its environment, so they need no word of the command.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from trainchart.scaffold.flag import TYPES, Declaration, Flag, NotReadableError, make_flag
from trainchart.scaffold.python_literal import Constants, read_value, type_name

_BASE = "Hyperparameters"


def find_settings(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield every field of the script's classes of hyperparameters, in its order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and _BASE in map(type_name, node.bases):
            # What stands after a field may be its docstring.
            for field, after in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    read = partial(_read, field.target.id, field, after, constants)
                    yield Declaration(field.target.id, field.lineno, read)


def _read(name: str, field: ast.AnnAssign, after: ast.stmt, constants: Constants) -> Flag:
    given = type_name(field.annotation)
    if given not in TYPES:
        raise NotReadableError("its type is not float, int, str or bool")
    if field.value is None:
        raise NotReadableError("it has no default")
    default = read_value(field.value, constants)
    match after:
        case ast.Expr(value=ast.Constant(value=description)):
            return make_flag(name, TYPES[given], default, description, {}, "environment")
    return make_flag(name, TYPES[given], default, "", {}, "environment")
