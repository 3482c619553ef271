"""Names of TensorFlow 1 and Keras 2 in a program, which TensorFlow 2 with Keras 3 does not have any more. Pure.

One note for all of TensorFlow 1 and one for all of Keras 2: they name the first place, and the other modules with more.
Names in a try block or below a test of the version are left out, because the program has another way there, and so are
modules that are imported only there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainchart.scaffold.modules import Module, bound_names, find_certain, full_name, imported_names
from trainchart.scaffold.python_literal import called_name
from trainchart.scaffold.tensorflow_1 import TENSORFLOW_1

_GONE = re.compile(
    r"tensorflow\.(examples|contrib|models|tensorboard|python\.(estimator|ops\.seq2seq|summary\.event_accumulator))\b"
    r"|tensorflow(\.compat\.v1)?\.(contrib|estimator|keras\.estimator)\b|tf_slim|tensorflow_estimator"
)
_SESSION = re.compile(r"(tensorflow\.(python\.)?)?keras\.backend\.(tensorflow_backend\.)?(get|set)_session")
_OWN_SESSION = (
    'remove it, or call tf.compat.v1.keras.backend\'s, with env TF_USE_LEGACY_KERAS: "1" in the spec and tf_keras in '
    "the image"
)
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
    r"(^|\.)keras\.(experimental|estimator|layers\.(experimental|DenseFeatures|CuDNNLSTM|CuDNNGRU)|optimizers\.legacy)(\.|$)"
)
_KERAS_2_BACKEND = re.compile(
    r"keras\.backend\.(?!(backend|clear_session|get_uid|(set_)?(epsilon|floatx|image_data_format)|is_float_dtype"
    r"|is_int_dtype|is_keras_tensor|result_type|standardize_dtype)$)\w+"
    r"|tensorflow\.keras\.backend\.(experimental|function|in_test_phase|in_train_phase|(set_)?learning_phase"
    r"|learning_phase_scope|local_conv1d|local_conv2d|manual_variable_initialization|normalize_batch_in_training"
    r"|placeholder|print_tensor|random_binomial|reset_uids)"
)
"""What the backends of keras and of tf.keras do not have any more: almost everything, and these few."""
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
    way_out: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def find_old_code(modules: tuple[Module, ...]) -> Iterator[str]:
    """Yield a note on TensorFlow 1, and one on Keras 2, where the program uses them."""
    certain = [module for module in modules if module.is_certain]
    places = [place for module in certain for place in _find_tensorflow_1(module)]
    gone = [place for place in places if place.way_out == _REPLACE]
    if places:
        first = (gone or places)[0]
        yield (
            f"{first}: {first.name} needs TensorFlow 1, and images have TensorFlow 2: "
            f"{_way_out(first, places)}{_also(first, places)}"
        )
    is_legacy = any(
        "tf_keras" in (text := ast.unparse(module.tree)) or "USE_LEGACY_KERAS" in text for module in modules
    )
    found = [] if is_legacy else [place for module in certain for place in _find_keras_2(module)]
    if found and not gone:
        imported = {name.partition(".")[0] for module in modules for name, _ in imported_names(module.tree)}
        yield (
            f"{found[0]}: {found[0].name} is Keras 2, and images have Keras 3: "
            f"{_TF_KERAS if 'keras' in imported else _LEGACY}, with tf_keras in the image, or change it "
            f"(https://keras.io/guides/migrating_to_keras_3){_also(found[0], found)}"
        )


def _way_out(first: _Place, places: list[_Place]) -> str:
    """Return what to do, for the first place and then for those that need something else."""
    others = {place.way_out: place.name for place in reversed(places) if place.way_out != first.way_out}
    ways = [first.way_out, *(f"for {name}, {way}" for way, name in sorted(others.items()))]
    needs_layers = any(place.name.endswith((".layers", ".rnn_cell")) for place in places)
    return "; ".join(way + _LAYERS * (needs_layers and way.endswith(_CONVERT)) for way in ways)


def _also(first: _Place, places: list[_Place]) -> str:
    """Return " (also in …)" for the first place in each other module."""
    others = {place.file: str(place) for place in reversed(places) if place.file != first.file}
    return f" (also {', '.join(sorted(others.values()))})" if others else ""


def _find_tensorflow_1(module: Module) -> Iterator[_Place]:
    for node, name, full in _find_names(module.tree):
        is_gone = _GONE.match(full) if isinstance(node, ast.stmt) else _GONE.fullmatch(full)
        if is_gone:
            yield _Place(module.file, node.lineno, name, _REPLACE)
        elif _SESSION.fullmatch(full):
            yield _Place(module.file, node.lineno, name, _OWN_SESSION)
        elif full.startswith("tensorflow.") and full.removeprefix("tensorflow.") in TENSORFLOW_1:
            yield _Place(module.file, node.lineno, name, _CONVERT)


def _find_keras_2(module: Module) -> Iterator[_Place]:
    if "keras" not in ast.unparse(module.tree):
        return
    for node, name, full in _find_names(module.tree):
        if _SESSION.fullmatch(full):
            continue  # Told as TensorFlow 1.
        if isinstance(node, ast.Attribute):
            is_old = node.attr in _KERAS_2_NAMES or _KERAS_2_PATHS.search(name)
        else:
            is_old = _KERAS_2_MODULES.match(full)
        if is_old or _KERAS_2_BACKEND.fullmatch(full):
            yield _Place(module.file, node.lineno, name)
    for call in find_certain(module.tree):
        if isinstance(call, ast.Call) and (name := _old_call(call)):
            yield _Place(module.file, call.lineno, name)


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


def _find_names(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom | ast.Attribute, str, str]]:
    """Yield what the module imports and the attributes it uses: as written, and with the import's name in full."""
    bound = bound_names(tree)
    for node in find_certain(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((node, base + alias.name, base + alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            yield node, name, full_name(name, bound)
