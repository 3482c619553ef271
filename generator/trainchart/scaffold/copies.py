"""Whether a program, as far as reading tells, does anything with the strategy that it is started under, and whether
the training library does it. Pure.

One that does not trains a copy of its own in every pod, and every copy writes the same checkpoints.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from trainchart.scaffold.modules import Load, Module, read_modules

_LIBRARY = "trainchart_training"
_ONE_POD = r"tf\.distribute\.(Mirrored|OneDevice)Strategy|\b(Mirrored|OneDevice)Strategy"
_IN_A_POD = re.compile(rf"{_ONE_POD}|/?gpu:|device:GPU|list_(physical|logical)_devices|multi_gpu", re.IGNORECASE)
_ANY = re.compile(r"[Dd]istribut|[Dd][Tt]ensor|trainchart_training|Strategy")
PLACE = re.compile(
    r"TF_CONFIG|TASK_(TYPE|INDEX)|\w+_HOSTS|ClusterSpec|cluster_resolver|ClusterResolver|tf\.train\.Server"
    r"|train_and_evaluate|replica_device_setter|SyncReplicasOptimizer|TRAINCHART_(PS|WORKER|TASK|REPLICA)\w*"
)
"""What a program mentions that finds its place among others."""
_KNOWN = {
    *sys.stdlib_module_names,
    *("tensorflow", "keras", "tf_keras", "absl", "click", "typer", "fire", "numpy", "scipy", "pandas", "sklearn"),
    *("matplotlib", "seaborn", "PIL", "cv2", "h5py", "tqdm", "yaml", "tensorboard", "tensorflow_datasets", "requests"),
    *("tensorflow_probability", "tensorflow_text", "tensorflow_hub", "google", "six", "psutil", "joblib", "rich"),
}
"""Packages that distribute nothing by themselves; any other may."""


def describe_copies(name: str, file: str, content: bytes, load: Load, started: str, strategy: str) -> str:
    """Return what is wrong with training the script `file` under `strategy`; "" where nothing is, or none can tell.

    `name` is the script's as a module; `started` is the command line and all that the spec gives the program.

    Raises:
        ToolError: the script is not Python.
    """
    if strategy == "single" or PLACE.search(started):
        return ""
    modules = read_modules(name, file, content, load)
    own = {module.name.partition(".")[0] for module in modules}
    imported = {name.partition(".")[0] for module in modules for name in _imports(module)}
    if not imported & {"tensorflow", "keras", "tf_keras"} or imported - own - _KNOWN:
        return ""
    text = "\n".join(_without_docstrings(module.tree) for module in modules)
    if PLACE.search(text):
        return ""
    if strategy == "mirrored":
        is_spread, what = _ANY.search(text) or _IN_A_POD.search(text), "it trains on one device"
    else:
        is_spread = _ANY.search(re.sub(_ONE_POD, "", text))
        what = "each pod trains a copy of its own, and all copies write the same checkpoints"
    if is_spread:
        return ""
    return f"{file} does not use {strategy}: {what}"


def uses_training_library(name: str, file: str, content: bytes, load: Load) -> bool:
    """Tell whether the script `file`, or a module of its code that it imports, imports the training library.

    Raises:
        ToolError: the script is not Python.
    """
    modules = read_modules(name, file, content, load)
    return any(found.partition(".")[0] == _LIBRARY for module in modules for found in _imports(module))


def _imports(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module


def _without_docstrings(tree: ast.Module) -> str:
    """Return the program's text without what it only says about itself."""
    kept = ast.parse(ast.unparse(tree))
    for node in ast.walk(kept):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            node.body = [part for part in node.body if not _is_text(part)]
    return ast.unparse(kept)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
