"""Reads a training script without running it: its flags, and the strategy that it is written for. Pure.

What cannot be told by reading becomes a note for the user, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from trainchart.errors import Problem, ToolError
from trainchart.scaffold.absl_flags import find_absl
from trainchart.scaffold.argparse_flags import find_argparse
from trainchart.scaffold.click_flags import find_click
from trainchart.scaffold.flag import Declaration, Flag, NotReadableError, to_camel_case
from trainchart.scaffold.library_settings import find_settings
from trainchart.scaffold.python_literal import read_constants
from trainchart_runtime import contract

CLASSIC_FLAGS: Mapping[str, str] = {
    "jobName": contract.CLASSIC_TASK_TYPE,
    "taskIndex": contract.CLASSIC_TASK_INDEX,
    "taskId": contract.CLASSIC_TASK_INDEX,
    "psHosts": "PS" + contract.CLASSIC_HOSTS_SUFFIX,
    "workerHosts": "WORKER" + contract.CLASSIC_HOSTS_SUFFIX,
}
"""Flag in camelCase → the launcher's word for it. Only believed where the script has the hosts as flags too."""
_HOSTS = {"psHosts", "workerHosts"}
FOLDER_FLAGS: Mapping[str, str] = {
    **dict.fromkeys(("checkpointDir", "checkpointPath", "ckptDir", "trainDir", "modelDir"), contract.CHECKPOINTS_DIR),
    **dict.fromkeys(("logDir", "logdir", "summaryDir", "tensorboardDir"), contract.LOG_DIR),
}
"""Flag in camelCase → the variable that holds the shared folder it should get."""
_STRATEGIES: Mapping[str, str] = {
    "ParameterServerStrategy": "parameter-server",
    "ParameterServerStrategyV2": "parameter-server",
    "ClusterCoordinator": "parameter-server",
    "MultiWorkerMirroredStrategy": "multi-worker-mirrored",
    "CollectiveAllReduceStrategy": "multi-worker-mirrored",
    "SyncReplicasOptimizer": "between-graph-sync",
    "replica_device_setter": "between-graph-async",
    "MirroredStrategy": "mirrored",
}
"""Names in a script → the strategy they show, from the one that says most to the one that says least."""
_REQUIRED = "it is required, so the script does not start until code.command gives it a value"


@dataclass(frozen=True)
class ScriptFacts:
    """What reading a script tells."""

    flags: tuple[Flag, ...]
    references: Mapping[str, str]
    """Option → variable that fills it: classic flags and folders."""
    strategy: str
    is_module: bool
    """Whether it imports from its own package by dots, so that it runs as `python -m package.module` only."""
    notes: tuple[str, ...]
    """What the user should know: flags left at their defaults and why, and what was assumed."""


def read_script(text: str, file: str) -> ScriptFacts:
    """Read the script `text`; `file` is its name for messages.

    Raises:
        ToolError: it is not Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        problem = Problem(getattr(error, "msg", None) or str(error), f"{file}:{line}")
        raise ToolError(f"{file} is not a Python script that can be read", problems=(problem,)) from error
    constants = read_constants(tree)
    found = [
        *find_argparse(tree, constants, PurePosixPath(file).name),
        *find_absl(tree, constants),
        *find_click(tree, constants),
        *find_settings(tree, constants),
    ]
    names = {to_camel_case(declaration.option) for declaration in found if declaration.option.startswith("-")}
    is_classic = names >= _HOSTS
    flags: dict[str, Flag] = {}
    references: dict[str, str] = {}
    notes: list[str] = []
    for declaration in sorted(found, key=lambda declaration: declaration.line):
        name = to_camel_case(declaration.option)
        variable = (CLASSIC_FLAGS.get(name) if is_classic else None) or FOLDER_FLAGS.get(name)
        if variable and declaration.option.startswith("--"):
            references[declaration.option] = variable
        elif name in flags:
            notes.append(_note(declaration, file, "another flag has the same name in camelCase"))
        else:
            try:
                flags[name] = declaration.read()
            except NotReadableError as error:
                notes.append(_note(declaration, file, str(error)))
    strategy, mentioned = _find_strategy(tree, is_classic)
    if len(mentioned) > 1:
        notes.append(f"{file} mentions {', '.join(mentioned)}: taken for {strategy}; --strategy says otherwise")
    is_module = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    return ScriptFacts(tuple(flags.values()), references, strategy, is_module, tuple(notes))


def _note(declaration: Declaration, file: str, reason: str) -> str:
    note = f"{file}:{declaration.line}: {declaration.option} is left to the script: {reason}"
    return f"{note}; {_REQUIRED}" if declaration.is_required else note


def _find_strategy(tree: ast.Module, is_classic: bool) -> tuple[str, tuple[str, ...]]:
    """Return the strategy that the names in the script show, and those of tf.distribute that it mentions."""
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {
        alias.name for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
    }
    shown = tuple(dict.fromkeys(strategy for name, strategy in _STRATEGIES.items() if name in used))
    if is_classic:
        return ("between-graph-sync" if "SyncReplicasOptimizer" in used else "between-graph-async"), ()
    distribute = tuple(strategy for strategy in shown if not strategy.startswith("between-graph"))
    return (shown[0] if shown else "single"), distribute
