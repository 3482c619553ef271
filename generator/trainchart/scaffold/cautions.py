"""What in a program will not work in a pod, told before it is tried: other frameworks, TensorFlow 1. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from trainchart.errors import ToolError
from trainchart.scaffold.folder_flags import is_path
from trainchart.scaffold.modules import Module
from trainchart.scaffold.python_literal import Arguments, called_name

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
_GONE_MODULES = re.compile(
    r"tensorflow\.(examples|contrib)\b|tensorflow(\.compat\.v1)?\.(contrib|estimator)\b|tf_slim|tensorflow_estimator"
)
_GONE = {"contrib", "estimator"}
_OLD = {
    "app", "flags", "logging", "Session", "InteractiveSession", "placeholder", "ConfigProto", "get_variable",
    "variable_scope", "global_variables_initializer", "reset_default_graph", "set_random_seed", "layers", "gfile",
    "local_variables_initializer", "get_default_graph", "truncated_normal", "random_normal", "losses", "GPUOptions",
    "initialize_all_variables", "trainable_variables", "assign", "summary.FileWriter", "summary.merge_all", "log",
    "train.GradientDescentOptimizer", "train.AdamOptimizer", "train.Saver", "train.Server",
    "train.SyncReplicasOptimizer",
    "train.replica_device_setter", "train.MonitoredTrainingSession", "train.Supervisor", "train.get_global_step",
    "train.get_or_create_global_step",
}  # fmt: skip
_WAY_OUT = (
    "needs TensorFlow 1, and images have TensorFlow 2: convert the script with tf_upgrade_v2, or import "
    "tensorflow.compat.v1 as tf and call tf.disable_v2_behavior(); contrib, estimator and examples have to be replaced"
)
_PARSERS = ("docopt", "hydra", "tyro", "simple_parsing", "jsonargparse", "plac", "defopt", "sacred", "gin", "getopt",
            "argh",
            "clize", "tap", "ml_collections", "pydantic_settings", "omegaconf", "draccus")  # fmt: skip
_NOT_READ: Mapping[str, str] = {
    "HfArgumentParser": "HfArgumentParser is left to the script: give its arguments in code.command",
    "get_ipython": "get_ipython() exists in a notebook only: take it out",
}
_WRITERS: Mapping[str, tuple[str, int]] = {
    "ModelCheckpoint": ("filepath", 0),
    "CheckpointManager": ("directory", 1),
    "TensorBoard": ("log_dir", 0),
    "CSVLogger": ("filename", 0),
    "BackupAndRestore": ("backup_dir", 0),
    "create_file_writer": ("logdir", 0),
    "FileWriter": ("logdir", 0),
    "save_weights": ("filepath", 0),
    "savefig": ("fname", 0),
    "makedirs": ("name", 0),
    "mkdir": ("path", 0),
    "save": ("filepath", 0),
    "export": ("filepath", 0),
    "savez": ("file", 0),
    "to_csv": ("path_or_buf", 0),
    "FileHandler": ("filename", 0),
}
_MOST_NOTES = 5


def refuse_other_frameworks(modules: tuple[Module, ...]) -> None:
    """Raise ToolError where the program trains with something else than TensorFlow."""
    imports = {name: (module.file, line) for module in modules for name, line in _plain_imports(module.tree)}
    has_tensorflow = "tensorflow" in imports or "tf_keras" in imports
    for name, framework in _FRAMEWORKS.items():
        if name in imports and (not has_tensorflow or name in _OWN_LAUNCH):
            file, line = imports[name]
            raise ToolError(
                f"{file}:{line}: this is a program of {framework}; trainchart trains TensorFlow programs only",
                hint="port it to tf.distribute or the training library (docs/training.md)",
            )


def _plain_imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the packages that are imported at the top of a module, so always and not only tried."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0], node.lineno


def find_cautions(modules: tuple[Module, ...], strategy: str, has_flags: bool) -> Iterator[str]:
    """Yield notes on what will fail in a pod, or what cannot be read."""
    for module in modules:
        yield from _find_tensorflow_1(module)
        yield from _find_keras_fit(module, strategy)
        yield from _find_writes(module)
        yield from _find_unread(module, has_flags)


def _find_tensorflow_1(module: Module) -> Iterator[str]:
    aliases = _tensorflow_names(module.tree)
    for node in ast.walk(module.tree):
        found, line = "", getattr(node, "lineno", 0)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found = next((base + name for name in names if _GONE_MODULES.match(base + name)), "")
        elif isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            old = _GONE if aliases.get(first) == "v1" else _GONE | _OLD if aliases.get(first) == "v2" else ()
            found = f"{first}.{rest}" if rest in old and rest else ""
        if found:
            yield f"{module.file}:{line}: {found} {_WAY_OUT}"
            return


def _tensorflow_names(tree: ast.Module) -> dict[str, str]:
    """Return the names by which the module calls TensorFlow, and whether by its old interface."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "tensorflow":
                    names[alias.asname or alias.name] = "v2"
                elif alias.name == "tensorflow.compat.v1" and alias.asname:
                    names[alias.asname] = "v1"
        elif isinstance(node, ast.ImportFrom) and node.module == "tensorflow.compat":
            names.update({alias.asname or "v1": "v1" for alias in node.names if alias.name == "v1"})
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).endswith("compat.v1"):
            names.update({ast.unparse(target): "v1" for target in node.targets})
    return names


def _find_keras_fit(module: Module, strategy: str) -> Iterator[str]:
    text = ast.unparse(module.tree)
    is_legacy = "tf_keras" in text or "TF_USE_LEGACY_KERAS" in text
    if strategy not in ("multi-worker-mirrored", "parameter-server") or is_legacy or "keras" not in text.lower():
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
            yield (
                f"{module.file}:{node.lineno}: {ast.unparse(node.func)}(…) of Keras 3 fails under {strategy}: set env "
                'TF_USE_LEGACY_KERAS: "1" in the spec, with tf_keras in the image, or use the training library '
                "(docs/training.md)"
            )
            return


def _find_writes(module: Module) -> Iterator[str]:
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        name = called_name(node)
        arguments = Arguments(node, module.constants)
        path = None
        if name in _WRITERS:
            path = arguments.plain(*_WRITERS[name])
        elif (
            name == "open"
            and isinstance(arguments.plain("mode", 1), str)
            and set(arguments.plain("mode", 1)) & set("wax")
        ):
            path = arguments.plain("file", 0)
        if isinstance(path, str) and path and not path.startswith("/tmp") and "://" not in path and (
            is_path(path) or name not in ("save", "export") or "." in path
        ):  # fmt: skip
            found.setdefault(path, f"{module.file}:{node.lineno}: {name}({path!r})")
    for where in list(found.values())[:_MOST_NOTES]:
        yield (
            f"{where} writes where a pod cannot, or where it is lost: write below TRAINCHART_CHECKPOINTS_DIR or "
            "TRAINCHART_LOG_DIR, which are in the environment"
        )


def _find_unread(module: Module, has_flags: bool) -> Iterator[str]:
    """Yield what the program reads from its command line in a way that only running it would tell."""
    for name, line in _plain_imports(module.tree):
        if name in _PARSERS:
            yield f"{module.file}:{line}: what {name} reads is left to the script: give its arguments in code.command"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and called_name(node) in _NOT_READ:
            yield f"{module.file}:{node.lineno}: {_NOT_READ[called_name(node)]}"
            return
    slices = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.argv" and ast.unparse(node.slice) != "0"
    ]
    indexed = [node for node in slices if not isinstance(node.slice, ast.Slice)]
    if indexed or (slices and not has_flags):
        node = (indexed or slices)[0]
        yield (
            f"{module.file}:{node.lineno}: {ast.unparse(node)} is left to the script: add its arguments to "
            "code.command, as $(TRAINCHART_HP_NAME) where an experiment shall vary them"
        )
