"""Reads `flags.DEFINE_float(…)` and its kin of absl, and of TensorFlow's old tf.app.flags. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial

from trainchart.scaffold.flag import (
    Declaration,
    Flag,
    FlagType,
    NotReadableError,
    explain_exclusive,
    make_flag,
    make_list,
    read_bounds,
    read_choices,
    refuse,
)
from trainchart.scaffold.python_literal import Arguments, Constants, called_name, type_name

_TYPES: Mapping[str, FlagType] = {
    "DEFINE_float": "number",
    "DEFINE_integer": "integer",
    "DEFINE_string": "string",
    "DEFINE_enum": "string",
    "DEFINE_enum_class": "string",
    "DEFINE_bool": "boolean",
    "DEFINE_boolean": "boolean",
}


_SEPARATORS = {"DEFINE_list": ",", "DEFINE_spaceseplist": " "}
_LISTS = ("DEFINE_multi_string", "DEFINE_multi_integer", "DEFINE_multi_float", "DEFINE_multi_enum")
"""Take a value each time that the flag is given."""


def find_absl(tree: ast.Module, constants: Constants) -> Iterator[Declaration]:
    """Yield every flag that the script defines, in its order."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assigned = _find_assigned(tree)
    marked = {name for call in calls for name in _names(call, constants, assigned, "required")}
    exclusive = _find_exclusive(calls, constants, assigned)
    for call in calls:
        if called_name(call).startswith("DEFINE_"):
            arguments = Arguments(call, constants)
            name = arguments.text("name", 0)
            if name:
                read = partial(_read, f"--{name}", called_name(call), arguments)
                if name in exclusive:
                    read = partial(refuse, exclusive[name])
                is_required = name in marked or arguments.is_true("required")
                kind, default = _TYPES.get(called_name(call)), arguments.plain("default", 1)
                separator = _SEPARATORS.get(called_name(call), " " if called_name(call) in _LISTS else "")
                yield Declaration(f"--{name}", call.lineno, read, is_required, kind, default, separator=separator)


def _find_assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names of a module with what they are assigned: flags, and lists of them."""
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    found = {target.id: node.value for node in plain for target in node.targets if isinstance(target, ast.Name)}
    annotated = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    typed = {node.target.id: node.value for node in annotated if isinstance(node.target, ast.Name) and node.value}
    return {**found, **typed}


def _find_exclusive(calls: list[ast.Call], constants: Constants, assigned: Mapping[str, ast.expr]) -> dict[str, str]:
    """Return the flags that are marked as mutually exclusive, and what is told of them."""
    # One that has a default counts as given, a boolean only where its default is true.
    given = {
        Arguments(call, constants).text("name", 0)
        for call in calls
        if called_name(call).startswith("DEFINE_")
        and ast.unparse(Arguments(call, constants).node("default", 1) or ast.Constant(None)) not in ("None", "False")
    }
    found: dict[str, str] = {}
    for call in calls:
        names = list(_names(call, constants, assigned, "mutual_exclusive"))
        is_required = Arguments(call, constants).is_true("required") and given.isdisjoint(names)
        found.update(dict.fromkeys(names, explain_exclusive([f"--{name}" for name in names], is_required)))
    return found


def _names(call: ast.Call, constants: Constants, assigned: Mapping[str, ast.expr], what: str) -> Iterator[str]:
    """Yield the flags that `flags.mark_flags_as_<what>(["a", "b"])` and its singular are called for."""
    arguments = Arguments(call, constants)
    if called_name(call) == f"mark_flag_as_{what}":
        yield from _read_names(arguments.node("flag_name", 0), constants, assigned)
    elif called_name(call) in (f"mark_flags_as_{what}", f"mark_bool_flags_as_{what}"):
        yield from _read_names(arguments.node("flag_names", 0), constants, assigned)


def _read_names(node: ast.expr | None, constants: Constants, assigned: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield the flags that an expression names: by their texts, or by what DEFINE_… returned."""
    match node:
        case ast.Constant(value=str(name)):
            yield name.lstrip("-")
        case ast.Name(id=name) if name in constants:
            known = constants[name]
            yield from (str(item) for item in (known if isinstance(known, (list, tuple)) else [known]))
        case ast.Name(id=name) if name in assigned:
            others = {other: value for other, value in assigned.items() if other != name}
            yield from _read_names(assigned[name], constants, others)
        case ast.Call() if called_name(node).startswith("DEFINE_"):
            yield Arguments(node, constants).text("name", 0)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(args=parts, func=ast.Name(id="list" | "tuple")):
            for part in parts:
                yield from _read_names(part, constants, assigned)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from _read_names(left, constants, assigned)
            yield from _read_names(right, constants, assigned)
        case ast.Starred(value=part) | ast.Attribute(value=part, attr="name"):
            yield from _read_names(part, constants, assigned)
        case ast.Name() | ast.Attribute():
            # What another module defines is called like its flag as a rule.
            yield type_name(node).lower().lstrip("_").removesuffix("_flag")


def _read(option: str, function: str, arguments: Arguments) -> Flag:
    if arguments.is_open:
        raise NotReadableError("its settings come from a * or ** expression")
    help_text = arguments.text("help", 3 if "enum" in function else 2)
    if function in _SEPARATORS:
        separator = _SEPARATORS[function]
        default = arguments.value("default", 1)
        default = default.split(separator) if isinstance(default, str) and default else default or []
        return make_list(option, default, help_text, {}, "value", separator)
    if function in _LISTS:
        return make_list(option, arguments.value("default", 1), help_text, {}, "repeated")
    kind = _TYPES.get(function)
    if kind is None:
        raise NotReadableError(f"{function} is not read")
    default = arguments.plain("default", 1)
    if kind == "boolean" and default is None:
        return make_flag(option, kind, None, help_text, {}, "pair", f"--no{option[2:]}")
    if function == "DEFINE_enum":
        return make_flag(option, kind, default, help_text, read_choices(arguments.value("enum_values", 2), kind))
    if kind not in ("number", "integer"):
        return make_flag(option, kind, default, help_text, {})
    bounds = read_bounds(arguments.value("lower_bound", 3), arguments.value("upper_bound", 4))
    return make_flag(option, kind, default, help_text, bounds)
