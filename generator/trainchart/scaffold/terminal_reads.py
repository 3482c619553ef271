"""Where a program asks at the terminal, which no pod has: input() and its kin of other libraries. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trainchart.scaffold.modules import Module, bound_names, find_certain, full_name

_ASKING = {
    *("input", "raw_input", "builtins.input", "breakpoint", "pdb.set_trace", "code.interact", "IPython.embed"),
    *("getpass.getpass", "pwinput.pwinput", "stdiomask.getpass", "sys.stdin.read", "sys.stdin.readline"),
    *("click.prompt", "click.confirm", "click.pause", "click.getchar", "click.edit", "typer.prompt", "typer.confirm"),
    *("rich.prompt.Prompt.ask", "rich.prompt.Confirm.ask", "rich.prompt.IntPrompt.ask", "rich.prompt.FloatPrompt.ask"),
    *("inquirer.prompt", "PyInquirer.prompt", "prompt_toolkit.prompt"),
}


def find_questions(module: Module) -> Iterator[str]:
    """Yield a note on what the program asks at the terminal, unless it looks first whether it has one."""
    if "isatty" in ast.unparse(module.tree):
        return
    bound = bound_names(module.tree)
    nodes = list(ast.walk(module.tree))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    lines: dict[str, int] = {}
    for node in find_certain(module.tree):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name not in own and (full_name(name, bound) or name) in _ASKING:
            lines[name] = min(node.lineno, lines.get(name, node.lineno))
    if lines:
        first, *others = sorted(lines, key=lines.__getitem__)
        also = f" (also {', '.join(f'{name}()' for name in others)})" if others else ""
        yield (
            f"{module.file}:{lines[first]}: {first}() reads from a terminal, which no pod has: take the answer from a "
            f"flag or from the environment{also}"
        )
