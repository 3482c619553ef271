"""What of a program may run: the functions and classes that are mentioned by what runs. Pure; serves modules.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from trainchart.scaffold.python_literal import called_name

_USAGE = {"len", "print", "format", "write", "basename", "usage", "print_usage", "print_help", "exit", "quit"}
"""What is called where a program tells how it is called."""
_FINDS_BY_NAME = re.compile(
    r"(?<![.\w])(globals|eval|exec)\(|\bgetmembers\(|sys\.modules|__subclasses__|\bFire\((name=.*)?\)"
)
"""Calls that may run functions which the script does not mention."""


def find_reached(
    trees: Mapping[str, ast.Module], entry: str, targets: Mapping[str, list[tuple[str, str]]]
) -> dict[str, ast.Module]:
    """Return what of each module may run; `targets` is what each imports, as (module, name taken from it).

    Of the script, `entry`, `main` is kept, which libraries find by its name. All of a script that runs nothing is kept.
    """
    looked_up = _find_looked_up(trees)
    kept: dict[str, list[ast.stmt]] = {}
    open_: dict[str, list[ast.stmt]] = {}
    for name, tree in trees.items():
        body = tree.body if name == entry else [node for node in tree.body if not _is_main_guard(node)]
        is_whole = name.rpartition(".")[2] in looked_up or bool(_FINDS_BY_NAME.search(ast.unparse(tree)))
        is_whole = is_whole or (name == entry and all(map(is_idle, body)))
        open_[name] = [] if is_whole else [node for node in body if _is_definition(node, of_script=name == entry)]
        kept[name] = [node for node in body if node not in open_[name]]
    while True:
        attributes = {
            n.attr for nodes in kept.values() for node in nodes for n in ast.walk(node) if isinstance(n, ast.Attribute)
        }
        reached = []
        for name, definitions in open_.items():
            taken = {t for source in trees for module, t in targets.get(source, ()) if module == name}
            local = {n.id for node in kept[name] for n in ast.walk(node) if isinstance(n, ast.Name)}
            mentioned = attributes | taken | local
            reached += [(name, d) for d in definitions if "*" in taken or getattr(d, "name", "") in mentioned]
        if not reached:
            break
        for name, definition in reached:
            kept[name].append(definition)
            open_[name].remove(definition)
    return {name: ast.Module(sorted(nodes, key=lambda node: node.lineno), []) for name, nodes in kept.items()}


def _find_looked_up(trees: Mapping[str, ast.Module]) -> set[str]:
    """Return the last words of modules of which getattr takes what only running tells."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and called_name(node) == "getattr" and node.args]
    names = {ast.unparse(call.args[0]).rpartition(".")[2] for call in calls}
    aliases = [alias for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
    return names | {alias.name.rpartition(".")[2] for alias in aliases if alias.asname in names}


def _is_definition(node: ast.stmt, *, of_script: bool) -> bool:
    """Tell whether a statement defines what runs only where it is mentioned."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    return not of_script or (node.name != "main" and not node.decorator_list)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))


def is_idle(node: ast.stmt) -> bool:
    """Tell whether a statement of a script does nothing but define, import, assign or tell how it is called."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)):
        return True
    test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
    if test in ("False", "0") or ("__name__" in test and "__main__" not in test):
        return True
    calls = {called_name(part) for part in ast.walk(node) if isinstance(part, ast.Call)}
    if "argv" in test and calls <= _USAGE:
        return True
    active = (ast.Call, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)
    return not any(isinstance(part, active) for part in ast.walk(node))
