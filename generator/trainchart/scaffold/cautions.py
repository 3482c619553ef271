"""What in a program will not work in a pod, told before it is tried. Pure; names that are gone are in old_code.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from trainchart.errors import ToolError
from trainchart.scaffold.flag import NEEDS_ONE
from trainchart.scaffold.foreign_packages import plain_imports
from trainchart.scaffold.modules import Module, find_certain, find_unread_modules
from trainchart.scaffold.old_code import find_old_code
from trainchart.scaffold.python_literal import called_name
from trainchart.scaffold.reached_code import is_idle
from trainchart.scaffold.terminal_reads import find_questions
from trainchart.scaffold.writes import find_writes

_FRAMEWORKS: Mapping[str, str] = {
    "torch": "PyTorch",
    "torchvision": "PyTorch",
    "pytorch_lightning": "PyTorch Lightning",
    "lightning": "PyTorch Lightning",
    "accelerate": "PyTorch (accelerate)",
    "deepspeed": "DeepSpeed",
    "horovod": "Horovod",
    "byteps": "BytePS",
    "jax": "JAX",
    "flax": "JAX (Flax)",
    "haiku": "JAX (Haiku)",
    "optax": "JAX (Optax)",
    "mxnet": "MXNet",
    "paddle": "PaddlePaddle",
    "mindspore": "MindSpore",
    "chainer": "Chainer",
    "oneflow": "OneFlow",
}
_OWN_LAUNCH = {"horovod", "byteps", "flax", "haiku", "optax", "pytorch_lightning", "lightning", "deepspeed"}
"""Replace TensorFlow's own distribution, or TensorFlow, even where the program imports it as well."""
_KERAS_BACKEND = re.compile(r"environ(?:\['KERAS_BACKEND'\] = |\.setdefault\('KERAS_BACKEND', )'(?!tensorflow)(\w+)'")
_PARSERS = ("docopt", "hydra", "tyro", "simple_parsing", "jsonargparse", "plac", "defopt", "sacred", "gin", "getopt",
            "argh",
            "clize", "tap", "ml_collections", "pydantic_settings", "omegaconf", "draccus")  # fmt: skip
_NOT_READ: Mapping[str, str] = {
    "HfArgumentParser": "HfArgumentParser is left to the script: give its arguments in code.command",
    "get_ipython": "get_ipython() exists only in notebooks: remove it",
}
_MAIN_BY_NAME = re.compile(r"\bFire\(|\bapp\.run\((argv=.*)?\)")
"""Calls that find `main` by themselves: Fire, and tf.app.run."""
_TF_CONFIG = re.compile(r"(os\.)?environ\[.TF_CONFIG.\]")
_HOST = re.compile(r"(grpc://)?([\w.-]+:\d{2,5}|(localhost|127\.0\.0\.1):\S*)")
_ENVIRONMENT = re.compile(r"(os\.)?environ\['((?!TRAINCHART_)\w+)'\]")
_PROVIDED = ("HOME", "PATH", "HOSTNAME", "PWD", "TF_CONFIG", "TASK_TYPE", "TASK_INDEX", "PS_HOSTS", "WORKER_HOSTS")
"""What pods have in their environment; of TF_CONFIG, a program for one pod knows that it may be missing."""


def refuse_other_frameworks(modules: tuple[Module, ...]) -> None:
    """Raise ToolError where the program trains with something else than TensorFlow."""
    certain = [module for module in modules if module.is_certain]
    imports = {name: (module.file, line) for module in certain for name, line in plain_imports(module.tree)}
    has_tensorflow = "tensorflow" in imports or "tf_keras" in imports
    for name, framework in _FRAMEWORKS.items():
        if name in imports and (not has_tensorflow or name in _OWN_LAUNCH):
            file, line = imports[name]
            raise ToolError(
                f"{file}:{line}: this is a {framework} program; trainchart trains TensorFlow programs only",
                hint="port it to tf.distribute or the training library (see training in the documentation)",
            )
    for module in modules:
        if found := _KERAS_BACKEND.search(ast.unparse(module.tree)):
            raise ToolError(
                f"{module.file}: sets KERAS_BACKEND to {found[1]}; trainchart trains TensorFlow programs only",
                hint="remove it: without a setting, Keras uses TensorFlow",
            )


def find_obstacles(modules: tuple[Module, ...], strategy: str) -> Iterator[str]:
    """Yield notes on what fails in every pod until the program, its image or its environment is changed."""
    yield from find_old_code(modules)
    yield from _find_keras_fit(modules, strategy)
    for module in modules:
        yield from _find_own_cluster(module)
        yield from _find_environment(module) if module.is_certain else ()


def find_cautions(modules: tuple[Module, ...], has_flags: bool) -> Iterator[str]:
    """Yield notes on what may go wrong in a pod, or what cannot be read."""
    yield from _find_early_success(modules)
    yield from _find_idle(modules, has_flags)
    for module in modules:
        yield from find_unread_modules(module)
        yield from find_writes(module)
        yield from find_questions(module)
        yield from _find_unread(module, has_flags)


def _find_keras_fit(modules: tuple[Module, ...], strategy: str) -> Iterator[str]:
    text = "\n".join(ast.unparse(module.tree) for module in modules)
    is_legacy = "tf_keras" in text or "TF_USE_LEGACY_KERAS" in text
    if strategy not in ("multi-worker-mirrored", "parameter-server") or is_legacy or "keras" not in text.lower():
        return
    if not re.search(r"distribut|Strategy", text):
        return  # It trains a copy in every pod, which copies.py says; fit works there.
    calls = [(module, node) for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    for module, node in calls:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
            yield (
                f"{module.file}:{node.lineno}: {ast.unparse(node.func)}(…) of Keras 3 fails under {strategy}: set env "
                'TF_USE_LEGACY_KERAS: "1" in the spec, with tf_keras in the image, or use the training library '
                "(see training in the documentation)"
            )
            return


def _find_early_success(modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield a note where a lost peer looks like the end of the data; see docs/strategies.md."""
    calls = [
        (called_name(node), f"{module.file}:{node.lineno}")
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
    ]
    is_in_step = any(name == "SyncReplicasOptimizer" for name, _ in calls)
    for name, where in calls:
        if is_in_step and name == "MonitoredTrainingSession":
            yield (
                f"{where}: MonitoredTrainingSession mistakes a peer that SyncReplicasOptimizer loses for the end "
                "of the data, and ends as if training were complete: let the program fail if its last step is "
                "too low, or use the "
                "training library (see training in the documentation)"
            )
            return


def _find_idle(modules: tuple[Module, ...], has_flags: bool) -> Iterator[str]:
    """Yield a note where the script only defines what others call, or nothing at all."""
    script, *others = modules
    body = script.tree.body
    functions = [node for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not has_flags and all(map(is_idle, body)):
        if functions or any(isinstance(node, ast.ClassDef) for node in body):
            yield f"{script.file} defines functions or classes and calls none of them: name the script that is started"
        elif not others:
            yield f"{script.file} runs nothing: name the script that is started"
    elif any(node.name == "main" and not node.decorator_list for node in functions):
        text = ast.unparse(script.tree)
        if len(re.findall(r"\bmain\b", text)) == 1 and not _MAIN_BY_NAME.search(text):
            yield f"{script.file} defines main() and does not call it: name the script that is started, or call main()"


def _find_own_cluster(module: Module) -> Iterator[str]:
    """Yield a note where the program says itself who its peers are, and so does not find those of its run."""
    nodes = list(ast.walk(module.tree))
    tests = [node for node in nodes if isinstance(node, ast.If) and "TF_CONFIG" in ast.unparse(node.test)]
    guarded = {part for test in tests for part in ast.walk(test)}
    assignments = [node for node in nodes if isinstance(node, ast.Assign)]
    for node in assignments:
        if node not in guarded and any(_TF_CONFIG.fullmatch(ast.unparse(target)) for target in node.targets):
            yield (
                f"{module.file}:{node.lineno}: sets TF_CONFIG, so its tasks do not find those of the run: remove it; "
                "the launcher sets TF_CONFIG in every pod"
            )
            return
    for call in nodes:
        if isinstance(call, ast.Call) and called_name(call) == "ClusterSpec" and call.args:
            name = ast.unparse(call.args[0])
            targets = [(ast.unparse(target), node.value) for node in assignments for target in node.targets]
            given = [value for target, value in targets if target == name or target.startswith(f"{name}[")]
            parts = [part for value in (*given, call.args[0]) for part in ast.walk(value)]
            if any(isinstance(part, ast.Constant) and _HOST.fullmatch(str(part.value)) for part in parts):
                yield (
                    f"{module.file}:{call.lineno}: ClusterSpec names its own hosts, so its tasks do not find those "
                    "of the run: read PS_HOSTS and WORKER_HOSTS, which are in the environment, or use --strategy single"
                )
                return


def _find_environment(module: Module) -> Iterator[str]:
    """Yield a note on variables that the program fails without and that no pod has by itself."""
    text = ast.unparse(module.tree)
    nodes = [node for node in find_certain(module.tree) if isinstance(node, ast.Subscript)]
    wanted: dict[str, int] = {}
    for node in sorted(nodes, key=lambda node: node.lineno):
        found = _ENVIRONMENT.fullmatch(ast.unparse(node))
        if found:
            # One that the program sets or asks for first is not missed.
            is_known = re.search(rf"'{found[2]}'( not)? in |environ\['{found[2]}'\] = ", text) or found[2] in _PROVIDED
            wanted.setdefault("" if is_known else found[2], node.lineno)
    wanted.pop("", None)
    if wanted:
        yield (
            f"{module.file}:{min(wanted.values())}: needs {', '.join(sorted(wanted))} in the environment, which no "
            "pod has: set env in the spec, or read one that the launcher sets, such as TF_CONFIG"
        )


def _find_unread(module: Module, has_flags: bool) -> Iterator[str]:
    """Yield what the program reads from its command line in a way that only running it would tell."""
    for name, line in plain_imports(module.tree):
        if name in _PARSERS:
            yield f"{module.file}:{line}: what {name} reads is left to the script: give its arguments in code.command"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and called_name(node) in _NOT_READ:
            yield f"{module.file}:{node.lineno}: {_NOT_READ[called_name(node)]}"
            return
    names = _argument_names(module.tree)
    slices = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in names and ast.unparse(node.slice) != "0"
    ]
    indexed: list[ast.expr] = [node for node in slices if not isinstance(node.slice, ast.Slice)]
    indexed += [
        node.value
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and ast.unparse(node.value) in names
    ]
    if indexed or (slices and not has_flags):
        node = (indexed or slices)[0]
        text = ast.unparse(module.tree)
        is_needed = bool(indexed) and not any(f"len({name})" in text for name in names)
        needs = f", because {NEEDS_ONE} it" if is_needed else ""
        yield (
            f"{module.file}:{node.lineno}: {ast.unparse(node)} is left to the script: add its arguments to "
            f"code.command, as $(TRAINCHART_HP_NAME) where an experiment varies them{needs}"
        )


def _argument_names(tree: ast.Module) -> set[str]:
    """Return what a module calls the arguments of its command line."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "sys"]
    aliases = [alias for node in imports for alias in node.names if alias.name == "argv"]
    return {"sys.argv", *(alias.asname or alias.name for alias in aliases)}
