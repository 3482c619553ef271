"""Names of TensorFlow 1 and Keras 2 in a program, which TensorFlow 2 with Keras 3 does not have any more. Pure.

One note for all of TensorFlow 1 and one for all of Keras 2: they name the first place, and the other modules with more.
Names in a try block or below a test of the version are left out, because the program has another way there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainchart.scaffold.modules import Module, imported_names
from trainchart.scaffold.python_literal import called_name

_GONE_MODULES = re.compile(
    r"tensorflow\.(examples|contrib)\b|tensorflow(\.compat\.v1)?\.(contrib|estimator)\b|tf_slim|tensorflow_estimator"
)
_GONE = {"contrib", "estimator", "keras.estimator"}
_OLD = {
    "app", "flags", "logging", "Session", "InteractiveSession", "placeholder", "ConfigProto", "get_variable",
    "variable_scope", "global_variables_initializer", "reset_default_graph", "set_random_seed", "layers", "gfile",
    "local_variables_initializer", "get_default_graph", "truncated_normal", "random_normal", "GPUOptions",
    "initialize_all_variables", "trainable_variables", "assign", "summary.FileWriter", "summary.merge_all", "log",
    "losses.sparse_softmax_cross_entropy", "losses.softmax_cross_entropy", "losses.sigmoid_cross_entropy",
    "losses.absolute_difference", "losses.get_total_loss", "losses.get_regularization_loss", "losses.add_loss",
    "train.GradientDescentOptimizer", "train.AdamOptimizer", "train.Saver", "train.Server",
    "train.SyncReplicasOptimizer",
    "train.replica_device_setter", "train.MonitoredTrainingSession", "train.Supervisor", "train.get_global_step",
    "train.get_or_create_global_step", "train.RMSPropOptimizer", "train.MomentumOptimizer", "train.AdagradOptimizer",
    "nn.rnn_cell", "nn.dynamic_rnn", "nn.static_rnn", "python_io",
}  # fmt: skip
_CONVERT = "import tensorflow.compat.v1 as tf and call tf.disable_v2_behavior()"
_LAYERS = ', and set env TF_USE_LEGACY_KERAS: "1" in the spec, with tf_keras in the image'
"""tf_upgrade_v2 does not know these any more, and under compat.v1 they are part of Keras 2."""
_REPLACE = (
    "TensorFlow 2 has no replacement: rewrite that part with Keras or the training library "
    "(see training in the documentation)"
)
_KERAS_2_MODULES = re.compile(
    r"tensorflow\.python\.keras\b|(tensorflow\.)?keras\.(wrappers\.scikit_learn|engine|experimental|estimator"
    r"|utils\.(np_utils|generic_utils|vis_utils|multi_gpu_utils|training_utils)|preprocessing\.text|backend\.tensorflow_backend"
    r"|preprocessing\.image\.ImageDataGenerator|layers\.(experimental|normalization|core|convolutional|pooling|recurrent|merge|embeddings|advanced_activations))\b"
)
_KERAS_2_NAMES = {
    "fit_generator", "evaluate_generator", "predict_generator", "predict_classes", "multi_gpu_model", "reset_states",
}  # fmt: skip
_KERAS_2_PATHS = re.compile(
    r"(^|\.)keras\.(experimental|estimator|layers\.(experimental|DenseFeatures|CuDNNLSTM|CuDNNGRU)|optimizers\.legacy"
    r"|backend\.(get_session|set_session|placeholder|function|learning_phase|set_learning_phase))(\.|$)"
)
_OPTIMIZERS = {"Adam", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl"}
_LEGACY = 'set env TF_USE_LEGACY_KERAS: "1" in the spec'
_TF_KERAS = "import tf_keras instead of keras"
"""The setting changes what tf.keras is, not what `import keras` finds."""


@dataclass(frozen=True)
class _Place:
    """Where a module uses a name that is gone."""

    file: str
    line: int
    name: str
    has_successor: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def find_old_code(modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield a note on TensorFlow 1, and one on Keras 2, where the program uses them."""
    places = [place for module in modules for place in _find_tensorflow_1(module)]
    gone = [place for place in places if not place.has_successor]
    if places:
        first = (gone or places)[0]
        convert = _CONVERT + (_LAYERS if any(place.name.endswith((".layers", ".rnn_cell")) for place in places) else "")
        way_out = "; for the rest, ".join([_REPLACE] * bool(gone) + [convert] * (len(gone) < len(places)))
        yield (
            f"{first}: {first.name} needs TensorFlow 1, and images have TensorFlow 2: {way_out}{_also(first, places)}"
        )
    is_legacy = any(
        "tf_keras" in (text := ast.unparse(module.tree)) or "USE_LEGACY_KERAS" in text for module in modules
    )
    found = [] if is_legacy else [place for module in modules for place in _find_keras_2(module)]
    if found and not gone:
        imported = {name.partition(".")[0] for module in modules for name, _ in imported_names(module.tree)}
        yield (
            f"{found[0]}: {found[0].name} is Keras 2, and images have Keras 3: "
            f"{_TF_KERAS if 'keras' in imported else _LEGACY}, with tf_keras in the image, or change it "
            f"(https://keras.io/guides/migrating_to_keras_3){_also(found[0], found)}"
        )


def _also(first: _Place, places: list[_Place]) -> str:
    """Return " (also in …)" for the first place in each other module."""
    others = {place.file: str(place) for place in reversed(places) if place.file != first.file}
    return f" (also {', '.join(sorted(others.values()))})" if others else ""


def _find_tensorflow_1(module: Module) -> Iterator[_Place]:
    aliases = _tensorflow_names(module.tree)
    for node in find_certain(module.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in _imported(node):
                if _GONE_MODULES.match(name):
                    yield _Place(module.file, node.lineno, name, has_successor=False)
        elif isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            if first in aliases and rest in _GONE:
                yield _Place(module.file, node.lineno, f"{first}.{rest}", has_successor=False)
            elif aliases.get(first) == "v2" and rest in _OLD:
                yield _Place(module.file, node.lineno, f"{first}.{rest}")


def _find_keras_2(module: Module) -> Iterator[_Place]:
    has_keras = "keras" in ast.unparse(module.tree)
    for node in find_certain(module.tree) if has_keras else ():
        name = ""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            name = next((name for name in _imported(node) if _KERAS_2_MODULES.match(name)), "")
        elif isinstance(node, ast.Attribute):
            path = ast.unparse(node)
            name = path if node.attr in _KERAS_2_NAMES or _KERAS_2_PATHS.search(path) else ""
        elif isinstance(node, ast.Call):
            name = _old_call(node)
        if name:
            yield _Place(module.file, getattr(node, "lineno", 0), name)


def _old_call(call: ast.Call) -> str:
    """Return what a call has that Keras 3 refuses: an optimizer's lr or decay, a model's save into a folder."""
    name, keywords = called_name(call), {keyword.arg: keyword.value for keyword in call.keywords}
    if name in _OPTIMIZERS:
        old = next((keyword for keyword in ("lr", "decay") if keyword in keywords), "")
        return f"{name}({old}=…)" if old else ""
    path = call.args[0] if call.args else keywords.get("filepath")
    tail = _tail(path)
    if name == "ModelCheckpoint":
        is_whole = ast.unparse(keywords.get("save_weights_only", ast.Constant(False))) != "True"
        is_kept = tail.endswith(".keras" if is_whole else ".weights.h5")
    elif name == "save_weights":
        is_kept = tail.endswith(".weights.h5")
    elif name == "save" and len(call.args) < 2 and _is_model(call.func):
        is_kept = tail.endswith((".keras", ".h5", ".hdf5"))
    else:
        return ""
    return f"{name}({ast.unparse(path)})" if path is not None and tail and not is_kept else ""


def _is_model(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and "model" in ast.unparse(function.value).lower()


def _tail(node: ast.expr | None) -> str:
    """Return how a path ends as far as it is written down; empty where that takes running the program."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(op=ast.Add(), right=right):
            return _tail(right)
        case ast.JoinedStr(values=[*_, last]):
            return _tail(last)
        case ast.Call(func=ast.Attribute(attr="join"), args=[_, *_, last]):
            return _tail(last)
        case ast.Call(func=ast.Attribute(attr="format", value=template)):
            return _tail(template)
    return ""


def find_certain(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a program that run on every version of TensorFlow, as far as can be told."""
    for node in ast.iter_child_nodes(tree):
        is_tried = isinstance(node, ast.Try) and bool(node.handlers)
        is_tested = isinstance(node, ast.If) and re.search(r"version|hasattr", ast.unparse(node.test), re.IGNORECASE)
        if not is_tried and not is_tested:
            yield node
            yield from find_certain(node)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    return [base + alias.name for alias in node.names]


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
