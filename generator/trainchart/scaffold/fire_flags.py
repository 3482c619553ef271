"""Reads the functions that Fire makes a command line of: fire.Fire(train). Pure; serves scaffold/script.py.

Fire also takes a class, an object of one, a table of functions, or nothing for all of the file; the command then
names a function before its flags.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from trainchart.scaffold.flag import NAMES_COMMAND, TYPES, Declaration, Flag, NotReadableError, make_flag, refuse
from trainchart.scaffold.python_literal import PATH_CLASSES, Constants, called_name, read_value, type_name


def find_fire(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield the parameters of the function that the script hands to Fire, and of its class's constructor."""
    for call in _find_calls(tree):
        choices = _find_choices(call, tree)
        if len(choices) == 1:
            constructor = _find_methods(type_name(call.args[0]), tree).get("__init__") if call.args else None
            for function in (constructor, *choices.values()):
                if function is not None:
                    yield from _find_parameters(function, constants)
        else:
            names = f": one of {', '.join(choices)}" if choices else ""
            yield Declaration("fire.Fire", call.lineno, partial(refuse, f"{NAMES_COMMAND} what runs{names}"))


def find_fire_command(tree: ast.Module) -> str:
    """Return the word that names what Fire runs; empty where it runs one function, or where there are several."""
    found = [_find_choices(call, tree) for call in _find_calls(tree)]
    return next((name for choices in found if len(choices) == 1 for name in choices), "")


def _find_calls(tree: ast.Module) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == "Fire")


def _find_choices(call: ast.Call, tree: ast.Module) -> Mapping[str, ast.FunctionDef]:
    """Return what the command can name, by its name; a function alone needs none."""
    functions = _find_functions(tree.body)
    match call.args:
        case []:
            return _leave_out_private(functions)
        case [ast.Name(id=name)] if name in functions:
            return {"": functions[name]}
        case [ast.Dict(keys=keys, values=values)]:
            named = zip((getattr(key, "value", None) for key in keys), map(type_name, values), strict=True)
            return {str(name): functions[function] for name, function in named if function in functions}
        case [ast.Name(id=name) | ast.Call(func=ast.Name(id=name))]:
            return _leave_out_private(_find_methods(name, tree))
    return {}


def _find_methods(class_name: str, tree: ast.Module) -> dict[str, ast.FunctionDef]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == class_name]
    return _find_functions(classes[0].body) if classes else {}


def _find_functions(body: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def _leave_out_private(functions: Mapping[str, ast.FunctionDef]) -> dict[str, ast.FunctionDef]:
    return {name: function for name, function in functions.items() if not name.startswith("_")}


def _find_parameters(function: ast.FunctionDef, constants: Constants) -> Iterator[Declaration]:
    arguments = [*function.args.posonlyargs, *function.args.args]
    missing: list[ast.expr | None] = [None] * (len(arguments) - len(function.args.defaults))
    defaults = [*missing, *function.args.defaults, *function.args.kw_defaults]
    for parameter, node in zip([*arguments, *function.args.kwonlyargs], defaults, strict=True):
        if parameter.arg in ("self", "cls"):
            continue
        try:
            default = None if node is None else read_value(node, constants)
        except NotReadableError:
            default = None
        given = type_name(parameter.annotation) or (type(default).__name__ if default is not None else "str")
        option = f"--{parameter.arg}"
        read = partial(_read, option, given, default)
        kind, separator = TYPES.get(given, "string"), " " if isinstance(default, list) else ""
        is_path, line = given in PATH_CLASSES, parameter.lineno
        yield Declaration(option, line, read, node is None, kind, default, separator=separator, is_path=is_path)


def _read(option: str, given: str, default: Any) -> Flag:
    if given == "bool":
        return make_flag(option, "boolean", default, "", {}, "pair", f"--no{option[2:]}")
    # Fire reads every value as Python does: a list is one text to it.
    if isinstance(default, list) or given not in TYPES:
        return make_flag(option, "string", None if default is None else str(default).replace(" ", ""), "", {})
    return make_flag(option, TYPES[given], default, "", {})
