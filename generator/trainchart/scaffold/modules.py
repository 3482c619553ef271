"""A program as its modules: what the script imports from the folder of the code, and what of that is used. Pure."""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.errors import Problem, ToolError
from trainchart.scaffold.python_literal import Arguments, called_name, read_constants
from trainchart.scaffold.reached_code import find_reached

Load = Callable[[str], tuple[str, bytes] | None]
"""Dotted name of a module → its file as messages call it, and its content; None where the code has no such module."""
_MOST_MODULES = 300
_IMPORTING = ("import_module", "__import__")
_RUNNING = ("run_module", "run_path", "spec_from_file_location", "SourceFileLoader")
_RUNS = re.compile(r"exec\(.*\bopen\(|(os|subprocess|sp)\.\w+\(.*(python|sys\.executable).*\.py\b", re.DOTALL)
_TESTED = re.compile(r"version|hasattr|import(?!an)|available", re.IGNORECASE)
_UNREAD = "its flags are not read: give them in code.command, or name it in --from-script"


@dataclass
class Module:
    """One file of the program; `tree` holds what of it may run.

    `is_certain` is False where every import of it is tried only, or tests what the image has.
    """

    name: str
    file: str
    tree: ast.Module
    constants: Mapping[str, Any] = field(default_factory=dict)
    is_certain: bool = False

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.file.endswith("__init__.py") else self.name.rpartition(".")[0]


SCRIPT_LIMIT = 1_000_000
"""Bytes of a file of Python: no person writes as many."""


def parse_module(content: bytes | str, file: str) -> ast.Module:
    """Parse Python as Python does, in the encoding that the file declares.

    Raises:
        ToolError: it is not Python.
    """
    if len(content) > SCRIPT_LIMIT:
        raise ToolError(
            f"{file} is too large to be read: it has more than {SCRIPT_LIMIT} bytes",
            hint="keep data in a file of its own, which the script opens",
        )
    try:
        tree = ast.parse(content)
        ast.unparse(tree)  # fails where an integer has more digits than Python prints
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = (
            getattr(error, "msg", None) or "it is nested too deeply, or has null bytes or a number of over 4300 digits"
        )
        problem = Problem(str(reason), where=f"{file}:{line}", hint=_hint(content, line, str(reason)))
        raise ToolError(f"{file} is not a Python script that can be read", problems=(problem,)) from error
    if all(map(_is_data, tree.body)):
        raise ToolError(
            f"{file} contains no statement that does anything",
            hint="name the script that is started, not an empty file or data such as JSON, YAML or a notebook",
        )
    return tree


def _is_data(node: ast.stmt) -> bool:
    """Tell whether a statement is data as well: JSON is an expression, and `lr: 0.1` of YAML an annotation."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call)


def _hint(content: bytes | str, line: int, reason: str) -> str:
    if isinstance(content, bytes) and ("decode" in reason or b"\0" in content) and (hint := _hint_encoding(content)):
        return hint
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    found = (text.splitlines()[line - 1 : line] or [""])[0].strip()
    if found[:1] in ("%", "!"):
        others = [str(number) for number, other in enumerate(text.splitlines(), 1) if other.lstrip()[:1] in ("%", "!")]
        return f"notebook commands are in lines {', '.join(others)}: remove them"
    if found.startswith(("print ", "exec ")) or (found.startswith("except ") and "," in found):
        return "this is Python 2: convert it to Python 3 with 2to3 -w or by hand"
    return ""


def _hint_encoding(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "it is UTF-16: save it as UTF-8"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return (
            f"byte 0x{content[error.start]:02x} in line {line} is not UTF-8: save the file as UTF-8, or name its "
            "encoding in a first line such as # -*- coding: latin-1 -*-"
        )
    return ""


def find_certain(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a program that run on every version of TensorFlow, as far as can be told."""
    for node in ast.iter_child_nodes(tree):
        is_tried = isinstance(node, ast.Try) and bool(node.handlers)
        is_tested = isinstance(node, ast.If) and _TESTED.search(ast.unparse(node.test))
        if not is_tried and not is_tested:
            yield node
            yield from find_certain(node)


def imported_names(tree: ast.Module, package: str = "", *, is_certain: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (module, name taken from it) for every import, dotted and absolute; the name is empty for `import a`."""
    constants = read_constants(tree)
    for node in find_certain(tree) if is_certain else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if package else []
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and called_name(node) in _IMPORTING:
            name = Arguments(node, constants).text("name", 0)
            above = package.split(".")[: len(package.split(".")) - (len(name) - len(name.lstrip("."))) + 1]
            module = ".".join((*above, name.lstrip("."))) if name.startswith(".") else name
            yield from [(module, "")] if name else []


def full_name(name: str, bound: Mapping[str, str]) -> str:
    """Return a dotted name with its first word as `bound_names` has it."""
    first, dot, rest = name.partition(".")
    return bound.get(first, "") + dot + rest


def bound_names(tree: ast.Module) -> dict[str, str]:
    """Return the names that imports bind, and plain assignments of parts of what they import, with what they are."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops = {alias.name.partition(".")[0] for alias in node.names if not alias.asname}
            names.update({top: top for top in tops})
            names.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            full = full_name(ast.unparse(node.value), names)
            if full.startswith(("tensorflow.", "keras.")):
                names.update({ast.unparse(target): full for target in node.targets})
    return names


def find_unread_modules(module: Module) -> Iterator[str]:
    """Yield notes on modules that the program imports by a name, or runs from a file, that only running it tells."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        function, called = called_name(node), f"{ast.unparse(node.func)}({ast.unparse(node.args[0])})"
        if function in _IMPORTING and not Arguments(node, module.constants).text("name", 0):
            yield f"{module.file}:{node.lineno}: {called} imports a module that is known only at run time: {_UNREAD}"
        elif function in _RUNNING or _RUNS.match(called):
            yield f"{module.file}:{node.lineno}: {called} runs another script: {_UNREAD}"


def read_modules(name: str, file: str, content: bytes | str, load: Load) -> tuple[Module, ...]:
    """Return the script, called `name` as a module, and all of the code that it imports and uses.

    A file of the code that is not Python is left out: the script itself will say so.
    """
    modules = {name: Module(name, file, parse_module(content, file))}
    targets: dict[str, list[tuple[str, str]]] = {}
    waiting = [name]
    while waiting and len(modules) < _MOST_MODULES:
        module = modules[waiting.pop()]
        targets[module.name] = list(imported_names(module.tree, module.package))
        for wanted in dict.fromkeys(n for pair in targets[module.name] for n in _candidates(*pair)):
            found = None if wanted in modules else load(wanted)
            if found:
                try:
                    modules[wanted] = Module(wanted, found[0], parse_module(found[1], found[0]))
                except ToolError:
                    continue
                waiting.append(wanted)
    for wanted, tree in find_reached({key: module.tree for key, module in modules.items()}, name, targets).items():
        modules[wanted].tree = tree
    _mark_certain(modules, name)
    for module in modules.values():
        module.constants = read_constants(module.tree)
    for module in modules.values():
        shared = {
            taken: modules[source].constants[taken]
            for source, taken in targets.get(module.name, ())
            if source in modules and taken in modules[source].constants
        }
        module.constants = {**shared, **module.constants}
    return tuple(modules.values())


def _mark_certain(modules: Mapping[str, Module], entry: str) -> None:
    """Mark the modules that the program imports on every version of TensorFlow."""
    waiting = [entry]
    while waiting:
        module = modules[waiting.pop()]
        if not module.is_certain:
            module.is_certain = True
            names = imported_names(module.tree, module.package, is_certain=True)
            waiting += [name for pair in names for name in _candidates(*pair) if name in modules]


def _candidates(module: str, name: str) -> Iterator[str]:
    parts = module.split(".") if module else []
    yield from (".".join(parts[: count + 1]) for count in range(len(parts)))
    if name and name != "*":
        yield f"{module}.{name}" if module else name
