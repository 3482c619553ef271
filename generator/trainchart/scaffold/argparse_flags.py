"""Reads `parser.add_argument(…)` of argparse. Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from trainchart.scaffold.flag import (
    NAMES_COMMAND,
    POSITIONAL,
    TYPES,
    Declaration,
    Flag,
    FlagType,
    Form,
    NotReadableError,
    explain_exclusive,
    make_flag,
    make_list,
    read_choices,
    refuse,
)
from trainchart.scaffold.python_literal import (
    FILE_TYPES,
    PATH_TYPES,
    Arguments,
    Constants,
    called_name,
    declared_type,
    environment_variable,
    read_value,
    type_name,
)

_COMPUTED = "its name is computed when the script runs"
_COMMAND = f"it belongs to a subcommand, and {NAMES_COMMAND} one"
_SWITCHES = ("store_true", "store_false", "store_const")
_NO_SETTING = ("help", "version")
_TEXT_TYPES = (*PATH_TYPES, *FILE_TYPES, "lower", "upper", "strip", "string")
"""Callables that argparse may have as type= and that take any text."""
_BOOLEANS = re.compile(
    r"_?(str|string|text|parse|to|as|arg)?_?(2|to|_)*_?(bool|boolean)(_?(flag|type|arg|parser|value))?"
)
"""Names of functions that turn a text such as "false" into a boolean: str2bool, strtobool, parse_bool …"""


def find_argparse(tree: ast.Module, constants: Constants, program: str) -> Iterator[Declaration]:
    """Yield every argument of the script, in its order; `program` is what `%(prog)s` stands for in help texts."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if called_name(call) == "ArgumentParser":
            program = Arguments(call, constants).text("prog", 0) or program
    commands = {name for name, _ in _find_assigned(tree, "add_parser")}
    exclusive = _find_exclusive(tree, calls, constants)
    defaults = {
        keyword.arg: keyword.value for call in calls if called_name(call) == "set_defaults" for keyword in call.keywords
    }
    for call in calls:
        if called_name(call) not in ("add_argument", "add_option") or not isinstance(call.func, ast.Attribute):
            continue
        names, is_computed = _read_names(call, constants)
        options = _options(names)
        owner = ast.unparse(call.func.value)
        if is_computed:
            yield Declaration(ast.unparse(call.args[0]), call.lineno, partial(refuse, _COMPUTED))
        elif options:
            option = options[0]
            arguments = Arguments(call, constants)
            later = defaults.get(arguments.text("dest") or option.lstrip("-").replace("-", "_"))
            if later is not None:
                arguments = arguments.replaced("default", later)
            if arguments.text("action") in _NO_SETTING:
                continue
            reason = _COMMAND if owner in commands else exclusive.get(owner, "")
            read = partial(refuse, reason) if reason else partial(_read, option, arguments, program)
            is_required = arguments.is_true("required")
            kind = _kind(arguments) if arguments.node("action") is None and arguments.node("nargs") is None else None
            variable = environment_variable(arguments.node("default"))
            is_list = arguments.node("nargs") is not None or arguments.text("action") in ("append", "extend")
            separator = " " if is_list and arguments.text("nargs") != "?" else ""
            default, given = arguments.plain("default"), _type(arguments)
            is_path, is_file = given in PATH_TYPES, given in FILE_TYPES
            yield Declaration(
                option, call.lineno, read, is_required, kind, default, variable, separator, is_path, is_file
            )
        elif names and isinstance(names[0], str) and names[0]:
            may_be_missing = Arguments(call, constants).text("nargs") in ("?", "*", "...")
            yield Declaration(names[0], call.lineno, partial(refuse, POSITIONAL), is_required=not may_be_missing)


def _find_assigned(tree: ast.Module, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the names that the result of `parser.<function>(…)` is assigned to, with the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called_name(node.value) == function:
            yield from ((ast.unparse(target), node.value) for target in node.targets)
        elif isinstance(node, ast.withitem) and node.optional_vars and isinstance(node.context_expr, ast.Call):
            found = [(ast.unparse(node.optional_vars), node.context_expr)]
            yield from found if called_name(node.context_expr) == function else []


def _find_exclusive(tree: ast.Module, calls: list[ast.Call], constants: Constants) -> dict[str, str]:
    """Return the mutually exclusive groups, as the code calls them, and what is told of their arguments."""
    function = "add_mutually_exclusive_group"
    groups = {ast.unparse(call): call for call in calls if called_name(call) == function}
    groups.update(_find_assigned(tree, function))
    options: dict[str, list[str]] = {name: [] for name in groups}
    for call in calls:
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if owner in groups and called_name(call) == "add_argument":
            options[owner] += _options(_read_names(call, constants)[0])[:1]
    return {
        name: explain_exclusive(options[name], Arguments(group, constants).is_true("required"))
        for name, group in groups.items()
    }


def _options(names: list[Any]) -> list[str]:
    """Return the names that are flags, the long ones first."""
    options = [name for name in names if isinstance(name, str) and name.startswith("-")]
    return sorted(options, key=lambda name: not name.startswith("--"))


def _read_names(call: ast.Call, constants: Constants) -> tuple[list[Any], bool]:
    """Return the names that `add_argument` is given, and whether some can only be told by running the script."""
    try:
        return [read_value(argument, constants) for argument in call.args], False
    except NotReadableError:
        return [], True


def _type(arguments: Arguments) -> str:
    """Return the name of what type= is, "str" where there is none; optparse says it as a text."""
    node = arguments.node("type")
    return "str" if node is None else arguments.text("type") or declared_type(node)


def _kind(arguments: Arguments) -> FlagType | None:
    return TYPES.get(_type(arguments), "string")


def _read(option: str, arguments: Arguments, program: str) -> Flag:
    if arguments.is_open:
        raise NotReadableError("its settings come from a * or ** expression")
    default = arguments.plain("default")
    given = _type(arguments)
    facts = {"default": default, "type": given, "choices": arguments.plain("choices"), "prog": program}
    help_text = _expand(arguments.text("help"), facts)
    action = arguments.text("action") or type_name(arguments.node("action")) or "store"
    if action in _SWITCHES:
        if default not in (None, action == "store_false") and action != "store_const":
            raise NotReadableError("it is a switch that its own default turns on")
        return make_flag(option, "boolean", False, help_text, {}, "switch")
    if action == "BooleanOptionalAction":
        return make_flag(option, "boolean", default, help_text, {}, "pair", "--no-" + option.lstrip("-"))
    nargs = arguments.node("nargs")
    if action not in ("store", "append", "extend") or (action == "append" and nargs is not None):
        raise NotReadableError(f"its action {action} is not read")
    choices: Any = arguments.value("choices")
    takes_text = arguments.node("type") is None or given in _TEXT_TYPES
    if action != "store" or (nargs is not None and arguments.text("nargs") != "?"):
        bounds = read_choices(choices, "string") if choices is not None and given == "str" else {}
        form: Form = "repeated" if action == "append" else "list"
        items = arguments.value("default")
        if action != "store" and items:
            # argparse adds what is given to the default, so that giving the default would double it.
            items = items if isinstance(items, (list, tuple)) else [items]
            help_text = f"{help_text} Added to the script's own: {', '.join(map(str, items))}.".strip()
            items = None
        return make_list(option, items, help_text, bounds, form)
    if given == "bool" or _BOOLEANS.fullmatch(given):
        return _read_boolean(option, given, arguments.value("default"), help_text)
    if takes_text and given not in TYPES:
        given = "str"
    if arguments.node("type") is None and default is not None and not isinstance(default, str):
        raise NotReadableError("it has no type=, so its value would arrive as text")
    if given not in TYPES:
        raise NotReadableError("its type= is not float, int or str")
    kind = TYPES[given]
    if isinstance(default, str) and given != "str":
        default = _convert(given, default)
    bounds = {} if choices is None else read_choices(choices, kind)
    return make_flag(
        option, kind, str(default) if given == "str" and default is not None else default, help_text, bounds
    )


def _convert(given: str, default: str) -> int | float:
    """Return what argparse makes of a default that is written as text: it calls type= for it."""
    try:
        return int(default) if given == "int" else float(default)
    except ValueError as error:
        raise NotReadableError(f"its default {default!r} is not of its type {given}") from error


def _read_boolean(option: str, given: str, default: Any, help_text: str) -> Flag:
    """Read a flag whose value is a text for true or false; type=bool itself takes every text but "" for true."""
    if isinstance(default, str) and given != "bool":
        default = default.lower() in ("true", "yes", "t", "y", "1", "on")
    if not isinstance(default, bool):
        raise NotReadableError("it is a boolean without a plain default")
    return make_flag(option, "boolean", default, help_text, {}, "bool" if given == "bool" else "value")


def _expand(text: str, facts: Mapping[str, Any]) -> str:
    """Return a help text as argparse prints it: %(default)s and its like filled in, and %% a percent sign."""
    choices = facts["choices"]
    if isinstance(choices, range):
        facts = {**facts, "choices": str(choices)}  # It may have more numbers than can be read.
    elif choices is not None:
        facts = {**facts, "choices": ", ".join(map(str, choices))}
    try:
        return text % facts
    except (KeyError, TypeError, ValueError):
        return text  # argparse would fail on it, or it names what only running tells.
