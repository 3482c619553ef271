"""Reads `@click.option(…)` and typer's parameters, where they are simple. Pure; serves scaffold/script.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
    make_flag,
    make_list,
    read_bounds,
    read_choices,
    refuse,
)
from trainchart.scaffold.python_literal import (
    FILE_TYPES,
    PATH_CLASSES,
    PATH_TYPES,
    Arguments,
    Constants,
    called_name,
    declared_type,
    read_value,
    type_name,
)

_CLICK_TYPES: Mapping[str, FlagType] = {
    **TYPES,
    "FLOAT": "number",
    "INT": "integer",
    "STRING": "string",
    "FloatRange": "number",
    "IntRange": "integer",
    **dict.fromkeys((*PATH_TYPES, *FILE_TYPES), "string"),
}
_SEVERAL = ("list", "List", "tuple", "Tuple", "Sequence", "set", "Set")
_PROMPTS = {"password_option": "--password", "confirmation_option": "--yes"}
"""Decorators of click that ask at the terminal → the options that they have unless they are told others."""
_ASKS = "it prompts at a terminal, which no pod has"
_COMMAND = f"it belongs to one of several commands, and {NAMES_COMMAND} one"


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
    is_group = sum(map(_is_command, ast.walk(tree))) > 1
    for declaration in _find_all(tree, constants, run_by_typer):
        yield replace(declaration, read=partial(refuse, _COMMAND)) if is_group else declaration


def _is_command(node: ast.AST) -> bool:
    """Tell whether `node` is a function that click or typer makes a command, or a group of them, of."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(
        isinstance(decorator, (ast.Call, ast.Attribute))
        and (called_name(decorator) if isinstance(decorator, ast.Call) else type_name(decorator))
        in ("command", "group", "callback")
        for decorator in decorators
    )


def _find_all(tree: ast.Module, constants: Constants, run_by_typer: set[str]) -> Iterator[Declaration]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            options = [call for call in decorators if called_name(call) in ("option", "argument", *_PROMPTS)]
            for call in options:
                yield from _find_click_parameter(Arguments(call, constants))
            if not options and (node.name in run_by_typer or _is_command(node)):
                yield from _find_typer(node, tree, constants)


def _find_click_parameter(arguments: Arguments) -> Iterator[Declaration]:
    line = arguments.call.lineno
    if called_name(arguments.call) in _PROMPTS:
        option = _option_name(arguments) or _PROMPTS[called_name(arguments.call)]
        yield Declaration(option, line, partial(refuse, _ASKS), is_required=True, kind="string")
        return
    if called_name(arguments.call) == "option":
        option = _option_name(arguments)
        if option:
            read = partial(_read_click, option, arguments)
            default, is_required = arguments.plain("default"), arguments.is_true("required") or _asks(arguments)
            separator = " " if arguments.node("multiple") or arguments.node("nargs") else ""
            kind, given = _click_kind(arguments), declared_type(arguments.node("type"))
            is_path, is_file = given in PATH_TYPES, given in FILE_TYPES
            option = option.split("/")[0]
            yield Declaration(option, line, read, is_required, kind, default, "", separator, is_path, is_file)
        return
    name = arguments.text("param_decls", 0)
    # Unlike an option's, an argument's value must be given unless something says otherwise.
    may_be_missing = any(arguments.node(setting) for setting in ("required", "default", "nargs"))
    if name:
        yield Declaration(
            name, line, partial(refuse, POSITIONAL), is_required=not may_be_missing or arguments.is_true("required")
        )


def _asks(arguments: Arguments) -> bool:
    """Tell whether the option is asked for at the terminal, which no pod has, because the command does not give it."""
    prompt = arguments.node("prompt")
    return prompt is not None and ast.unparse(prompt) != "False" and arguments.plain("default") is None


def _option_name(arguments: Arguments) -> str:
    texts = [argument.value for argument in arguments.call.args if isinstance(argument, ast.Constant)]
    names = [text for text in texts if isinstance(text, str) and text.startswith("-")]
    return next((name for name in names if name.startswith("--")), names[0] if names else "")


def _click_kind(arguments: Arguments) -> FlagType | None:
    """Return the type of an option's one value; click takes it from the default where type= is missing."""
    node, default = arguments.node("type"), arguments.plain("default")
    is_switch = "/" in _option_name(arguments) or arguments.is_true("is_flag")
    if is_switch or any(arguments.node(setting) for setting in ("multiple", "nargs", "count")):
        return None
    if node is None:
        return TYPES.get(type(default).__name__, "string")
    given = declared_type(node)
    return "string" if given == "Choice" else _CLICK_TYPES.get(given)


def _read_click(option: str, arguments: Arguments) -> Flag:
    if arguments.is_open:
        raise NotReadableError("its settings come from a * or ** expression")
    if not option.startswith("--"):
        raise NotReadableError("it has no long form")
    help_text, default = arguments.text("help"), arguments.plain("default")
    positive, _, negative = option.partition("/")
    if negative:
        return make_flag(positive.strip(), "boolean", bool(default), help_text, {}, "pair", negative.strip())
    if arguments.is_true("is_flag"):
        if default is True or arguments.node("flag_value") is not None:
            raise NotReadableError("it is a switch that its own default turns on")
        return make_flag(option, "boolean", False, help_text, {}, "switch")
    if arguments.node("multiple") is not None or arguments.node("nargs") is not None:
        form: Form = "list" if arguments.node("nargs") is not None else "repeated"
        return make_list(option, arguments.value("default"), help_text, {}, form)
    kind, node = _click_kind(arguments), arguments.node("type")
    if kind is None:
        raise NotReadableError("its type is not read")
    if not isinstance(node, ast.Call) or kind == "boolean":
        return make_flag(option, kind, default, help_text, {})
    of_type = arguments.of(node)
    if called_name(node) == "Choice":
        return make_flag(option, kind, default, help_text, read_choices(of_type.value("choices", 0), kind))
    bounds = _read_range(of_type) if "Range" in called_name(node) else {}
    return make_flag(option, kind, default, help_text, bounds)


def _read_range(arguments: Arguments) -> Mapping[str, Any]:
    """Return the bounds of an IntRange or FloatRange; one that clamps refuses nothing, so it has none."""
    if arguments.value("clamp", 4):
        return {}
    return read_bounds(
        arguments.value("min", 0),
        arguments.value("max", 1),
        is_open_below=bool(arguments.value("min_open", 2)),
        is_open_above=bool(arguments.value("max_open", 3)),
    )


def _typer_aliases(tree: ast.Module) -> dict[str, ast.Call]:
    """Return the names of the module that stand for a `typer.Option(…)` or `typer.Argument(…)`."""
    found: dict[str, ast.Call] = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        call = _info_call(node.value) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if call is not None:
            found.update({target.id: call for target in targets if isinstance(target, ast.Name)})
    return found


def _find_typer(function: ast.FunctionDef, tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield the parameters of a typer command: those with a default are options, the others arguments."""
    parameters = [*function.args.args, *function.args.kwonlyargs]
    aliases = _typer_aliases(tree)
    padding: list[ast.expr | None] = [None] * (len(function.args.args) - len(function.args.defaults))
    for parameter, default in zip(
        parameters, [*padding, *function.args.defaults, *function.args.kw_defaults], strict=True
    ):
        default = aliases.get(default.id, default) if isinstance(default, ast.Name) else default
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
                yield Declaration(parameter.arg, parameter.lineno, partial(refuse, POSITIONAL), is_required)
            continue
        name = _option_name(Arguments(call, constants)) if call else ""
        option = name or "--" + parameter.arg.replace("_", "-")
        plain = _plain(default, constants)
        is_list = _inner_type(annotation) in _SEVERAL
        kind = None if is_list else TYPES.get(_inner_type(annotation), "string")
        read = partial(_read_typer, option, annotation, plain, call, constants)
        is_required |= call is not None and plain is None and _asks(Arguments(call, constants))
        separator, is_path = " " if is_list else "", _inner_type(annotation) in PATH_CLASSES
        option, line = option.split("/")[0], parameter.lineno
        yield Declaration(option, line, read, is_required, kind, plain, separator=separator, is_path=is_path)


def _info_call(node: ast.expr | None) -> ast.Call | None:
    return node if isinstance(node, ast.Call) and called_name(node) in ("Option", "Argument") else None


def _plain(node: ast.expr | None, constants: Constants) -> Any:
    try:
        value = read_value(node, constants) if node is not None else None
    except NotReadableError:
        return None
    return None if value is ... else value


def _inner_type(annotation: ast.expr | None) -> str:
    """Return the name of a type, for Optional[int] and int | None that of int, for list[int] that of list."""
    match annotation:
        case ast.Subscript(value=outer, slice=inner) if type_name(outer) == "Optional":
            return _inner_type(inner)
        case ast.Subscript(value=outer):
            return type_name(outer)
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return _inner_type(left)
    return type_name(annotation)


def _read_typer(
    option: str, annotation: ast.expr | None, default: Any, call: ast.Call | None, constants: Constants
) -> Flag:
    arguments = Arguments(call, constants) if call else None
    description = arguments.text("help") if arguments else ""
    given = _inner_type(annotation)
    if given in _SEVERAL:
        return make_list(option, default, description, {}, "repeated")
    if given in PATH_CLASSES:
        given = "str"
    if given not in TYPES:
        raise NotReadableError("its type is not read")
    if given == "bool":
        positive, _, negative = option.partition("/")
        has_names = arguments is not None and bool(_option_name(arguments))
        if has_names and not negative:
            return make_flag(option, "boolean", False, description, {}, "switch")
        return make_flag(positive, "boolean", default, description, {}, "pair", negative or f"--no-{positive[2:]}")
    is_bounded = arguments is not None and not arguments.value("clamp")
    bounds = read_bounds(arguments.value("min"), arguments.value("max")) if arguments and is_bounded else {}
    return make_flag(option, TYPES[given], default, description, bounds)
