"""Values that a Python expression plainly has: literals, simple arithmetic, paths, constants of the module. Pure.

Nothing is executed. What cannot be told raises NotReadableError.
"""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from trainchart.scaffold.flag import NotReadableError

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_COMPUTED = "it is computed when the script runs"
_ENVIRONMENT = re.compile(r"(?:os\.)?(?:environ\[|environ\.get\(|getenv\()'(\w+)'.*")
_LARGEST_EXPONENT = 64
PATH_CLASSES = ("Path", "PosixPath", "PurePath", "PurePosixPath")
"""Of pathlib; click has a Path, too."""
_PATH_FUNCTIONS = ("expanduser", "abspath", "realpath", "normpath", "fspath")
PATH_TYPES = (*PATH_CLASSES, *_PATH_FUNCTIONS)
"""What the type of a flag may be that takes a path."""
FILE_TYPES = ("FileType", "File")
"""Types of argparse and click that open the file which a flag names, or what the program has open where it is `-`."""
_JOINING = ("path", "osp", "gfile")
"""Modules whose `join` joins paths, by their last word."""
_SAME_PATH = ("str", *_PATH_FUNCTIONS, "resolve", "absolute", "as_posix")
"""Functions and methods that return the path that they are given, in another form."""
_LONGEST_TEXT = 4096
"""Texts can double in every line."""

Constants = Mapping[str, Any]


def read_constants(tree: ast.Module) -> dict[str, Any]:
    """Return the module's plain constants: names that are assigned once, at its top level."""
    found: dict[str, Any] = {}
    changing: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name):
            if target.id in found:
                changing.add(target.id)
            try:
                found[target.id] = read_value(value, found)
            except NotReadableError:
                changing.add(target.id)
    return {name: value for name, value in found.items() if name not in changing}


def read_value(node: ast.expr, constants: Constants) -> Any:
    """Return what `node` evaluates to, a PurePosixPath for any Path.

    Raises:
        NotReadableError: telling takes running the script.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in constants:
            return constants[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return [read_value(element, constants) for element in elements]
        case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]):
            bounds = [read_value(argument, constants) for argument in arguments]
            if 1 <= len(bounds) <= 3 and all(isinstance(bound, int) for bound in bounds) and 0 not in bounds[2:]:
                return range(*bounds)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(read_value(operand, constants))
        case ast.BinOp(left=left, op=kind, right=right):
            return _combine(kind, read_value(left, constants), read_value(right, constants))
        case ast.JoinedStr(values=parts):
            return "".join(_text(read_value(part, constants)) for part in parts)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            value = read_value(value, constants)
            return _text(value if isinstance(value, PurePosixPath) else str(value))
        case ast.Call(func=ast.Name() | ast.Attribute()):
            return _read_path(node, constants)
        case ast.Attribute(value=value, attr="parent"):
            path = read_value(value, constants)
            if isinstance(path, PurePosixPath):
                return path.parent
    raise NotReadableError(_COMPUTED)


def _read_path(call: ast.Call, constants: Constants) -> Any:
    """Return the path that a call makes of other paths and texts."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = called_name(call)
    if is_joining(call):
        parts = [_text(read_value(argument, constants)) for argument in call.args]
        return PurePosixPath(*parts) if name in PATH_CLASSES else posixpath.join(*parts)
    if name == "dirname" and call.args:
        return posixpath.dirname(_text(read_value(call.args[0], constants)))
    if name in _SAME_PATH and call.args:
        return _text(read_value(call.args[0], constants))
    if name in _SAME_PATH and owner is not None:
        path = read_value(owner, constants)
        if isinstance(path, PurePosixPath):
            return path
    raise NotReadableError(_COMPUTED)


def _text(value: Any) -> str:
    if not isinstance(value, (str, PurePosixPath)) or len(str(value)) > _LONGEST_TEXT:
        raise NotReadableError(_COMPUTED)
    return str(value)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotReadableError(_COMPUTED)
    return value


def _combine(kind: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(kind, ast.Div) and isinstance(left, PurePosixPath):
        return left / _text(right)
    if isinstance(kind, ast.Add) and isinstance(left, str):
        return _text(left) + _text(right)
    left, right = _number(left), _number(right)
    try:
        if isinstance(kind, ast.Pow) and abs(right) <= _LARGEST_EXPONENT and abs(left) <= _LARGEST_EXPONENT:
            return left**right
        return _OPERATORS[type(kind)](left, right)
    except (KeyError, ArithmeticError) as error:
        raise NotReadableError(_COMPUTED) from error


class Arguments:
    """The arguments of one call, by position or keyword, read on demand."""

    def __init__(self, call: ast.Call, constants: Constants) -> None:
        self.call = call
        self._constants = constants
        self._named: Mapping[str, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        self.is_open = any(keyword.arg is None for keyword in call.keywords) or any(
            isinstance(argument, ast.Starred) for argument in call.args
        )
        """Whether the call takes arguments from a * or ** expression, which cannot be told."""

    def of(self, call: ast.Call) -> Arguments:
        """Return the arguments of another call of the same script."""
        return Arguments(call, self._constants)

    def replaced(self, name: str, node: ast.expr) -> Arguments:
        """Return these arguments with another one as the keyword `name`."""
        others = [keyword for keyword in self.call.keywords if keyword.arg != name]
        call = ast.Call(self.call.func, self.call.args, [*others, ast.keyword(name, node)])
        return Arguments(ast.copy_location(call, self.call), self._constants)

    def node(self, name: str, position: int = -1) -> ast.expr | None:
        if 0 <= position < len(self.call.args):
            return self.call.args[position]
        return self._named.get(name)

    def value(self, name: str, position: int = -1) -> Any:
        """Return the value given, None where none is."""
        node = self.node(name, position)
        return None if node is None else read_value(node, self._constants)

    def plain(self, name: str, position: int = -1) -> Any:
        """Return the value given, None where none is or where it is computed."""
        try:
            return self.value(name, position)
        except NotReadableError:
            return None

    def text(self, name: str, position: int = -1) -> str:
        """Return the text given, empty where none is or where it is computed: good for help texts only."""
        value = self.plain(name, position)
        return value if isinstance(value, str) else ""

    def is_true(self, name: str) -> bool:
        """Tell whether the argument is given as a plain True."""
        node = self.node(name)
        return isinstance(node, ast.Constant) and node.value is True


def called_name(call: ast.Call) -> str:
    """Return the last word of what is called: `parser.add_argument` is add_argument."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_joining(call: ast.Call) -> bool:
    """Tell whether a call makes one path of its arguments: os.path.join(…), Path(…)."""
    if not call.args or called_name(call) in PATH_CLASSES:
        return called_name(call) in PATH_CLASSES
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return called_name(call) == "join" and type_name(owner) in _JOINING


def type_name(node: ast.expr | None) -> str:
    """Return the name of a type expression such as `float` or `click.Path`; empty where it is none."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def declared_type(node: ast.expr | None) -> str:
    """Return the name of the type of a flag, of FileType("w") that of what is called; empty where it is none."""
    return called_name(node) if isinstance(node, ast.Call) else type_name(node)


def environment_variable(node: ast.expr | None) -> str:
    """Return the name of the variable that `os.environ["A"]`, `os.environ.get("A")` or `os.getenv("A")` reads."""
    found = _ENVIRONMENT.fullmatch(ast.unparse(node)) if node is not None else None
    return found[1] if found else ""
