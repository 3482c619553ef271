"""Reads `@click.option(…)` and typer's parameters, where they are simple. Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from trainchart.scaffold.flag import (
    TYPES,
    Declaration,
    Flag,
    FlagType,
    NotReadableError,
    make_flag,
    read_choices,
    refuse_positional,
)
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, read_value, type_name

_CLICK_TYPES: Mapping[str, FlagType] = {
    **TYPES,
    "FLOAT": "number",
    "INT": "integer",
    "STRING": "string",
    "FloatRange": "number",
    "IntRange": "integer",
}


def find_click(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield every option of the script's click and typer commands, in its order."""
    run_by_typer = {
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and called_name(node) == "run"
        and isinstance(node.func, ast.Attribute)
        and type_name(node.func.value) == "typer"
        and node.args
        and isinstance(node.args[0], ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            options = [call for call in decorators if called_name(call) in ("option", "argument")]
            for call in options:
                yield from _find_click_parameter(Arguments(call, constants))
            if not options and (node.name in run_by_typer or any(called_name(c) == "command" for c in decorators)):
                yield from _find_typer(node, constants)


def _find_click_parameter(arguments: Arguments) -> Iterator[Declaration]:
    line = arguments.call.lineno
    if called_name(arguments.call) == "option":
        option = _option_name(arguments)
        if option:
            read = partial(_read_click, option, arguments)
            yield Declaration(option, line, read, is_required=arguments.is_true("required"))
        return
    name = arguments.text("param_decls", 0)
    # Unlike an option's, an argument's value must be given unless something says otherwise.
    may_be_missing = any(arguments.node(setting) for setting in ("required", "default", "nargs"))
    if name:
        yield Declaration(
            name, line, refuse_positional, is_required=not may_be_missing or arguments.is_true("required")
        )


def _option_name(arguments: Arguments) -> str:
    texts = [argument.value for argument in arguments.call.args if isinstance(argument, ast.Constant)]
    names = [text for text in texts if isinstance(text, str) and text.startswith("-")]
    return next((name for name in names if name.startswith("--")), names[0] if names else "")


def _read_click(option: str, arguments: Arguments) -> Flag:
    if arguments.is_open or arguments.node("multiple") is not None or arguments.node("nargs") is not None:
        raise NotReadableError("it takes several values, or its settings come from elsewhere")
    if "/" in option or arguments.node("is_flag") is not None or not option.startswith("--"):
        raise NotReadableError("it is a switch that takes no value, or has no long form")
    default = arguments.value("default")
    type_node = arguments.node("type")
    bounds: Mapping[str, Any] = {}
    if isinstance(type_node, ast.Call):
        given, of_type = called_name(type_node), arguments.of(type_node)
        if given == "Choice":
            return make_flag(
                option, "string", default, arguments.text("help"), read_choices(of_type.value("choices", 0), "string")
            )
        limits = {"minimum": of_type.value("min", 0), "maximum": of_type.value("max", 1)}
        bounds = {key: limit for key, limit in limits.items() if limit is not None}
    else:
        given = type_name(type_node) or type(default).__name__
    if isinstance(default, bool):
        raise NotReadableError("it is a switch that takes no value")
    if given not in _CLICK_TYPES:
        raise NotReadableError("it has no default" if default is None else "its type is not read")
    return make_flag(option, _CLICK_TYPES[given], default, arguments.text("help"), bounds)


def _find_typer(function: ast.FunctionDef, constants: Constants) -> Iterator[Declaration]:
    """Yield the parameters of a typer command: those with a default are options, the others arguments."""
    parameters = [*function.args.args, *function.args.kwonlyargs]
    padding: list[ast.expr | None] = [None] * (len(function.args.args) - len(function.args.defaults))
    for parameter, default in zip(
        parameters, [*padding, *function.args.defaults, *function.args.kw_defaults], strict=True
    ):
        annotation, call = parameter.annotation, _info_call(default)
        if isinstance(annotation, ast.Subscript) and type_name(annotation.value) == "Annotated":
            elements = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
            annotation = elements[0] if elements else None
            call = next((info for info in map(_info_call, elements[1:]) if info), None)
        elif call is not None:
            default = call.args[0] if call.args else None
        is_required = default is None or (isinstance(default, ast.Constant) and default.value is ...)
        if called_name(call) == "Argument" if call else is_required:
            if type_name(annotation) != "Context":  # typer's own, not the command line's
                yield Declaration(parameter.arg, parameter.lineno, refuse_positional, is_required)
            continue
        name = _option_name(Arguments(call, constants)) if call else ""
        option = name or "--" + parameter.arg.replace("_", "-")
        read = partial(_read_typer, option, type_name(annotation), default, call, constants)
        yield Declaration(option, parameter.lineno, read, is_required)


def _info_call(node: ast.expr | None) -> ast.Call | None:
    return node if isinstance(node, ast.Call) and called_name(node) in ("Option", "Argument") else None


def _read_typer(option: str, given: str, default: ast.expr | None, call: ast.Call | None, constants: Constants) -> Flag:
    if given not in TYPES or given == "bool":
        raise NotReadableError("it is a switch that takes no value" if given == "bool" else "its type is not read")
    arguments = Arguments(call, constants) if call else None
    limits = {"minimum": arguments.value("min"), "maximum": arguments.value("max")} if arguments else {}
    bounds = {key: limit for key, limit in limits.items() if limit is not None}
    description = arguments.text("help") if arguments else ""
    value = read_value(default, constants) if default is not None else None
    return make_flag(option, TYPES[given], value, description, bounds)
