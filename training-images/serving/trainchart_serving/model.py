"""A version of a model in memory: loaded from its folder, described by its signatures, and called. Owns TensorFlow."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from trainchart_serving.content import check_content, read_stamp
from trainchart_serving.failures import Code, ServingError, invalid
from trainchart_serving.signature import DEFAULT_SIGNATURE, Arrays, Signature, TensorSpec

log = logging.getLogger(__name__)

GRAPH_FILE = "saved_model.pb"
_INITIALIZERS = {"__saved_model_init_op", "__saved_model_train_op"}
_AROUND_MESSAGES = ("Graph execution error", "Detected at node", "<stack traces", 'File "', "[[{{node")
_CODES = {code.number: code for code in Code}


class Model:
    """A version that has been loaded; `run` may be called from several threads at once."""

    def __init__(self, version: int, content: str, loaded: Any, graph: meta_graph_pb2.MetaGraphDef) -> None:
        self.version = version
        self.content = content
        self.definitions: dict[str, Any] = {
            name: definition for name, definition in graph.signature_def.items() if name not in _INITIALIZERS
        }
        self.signatures = _parse_signatures(self.definitions)
        self._loaded = loaded
        self._functions: Mapping[str, Callable[..., Any]] = loaded.signatures

    def find_signature(self, name: str) -> Signature:
        """Return a signature; the default one for an empty name.

        Raises:
            ServingError: the model has no such signature.
        """
        wanted = name or DEFAULT_SIGNATURE
        if wanted not in self.signatures:
            known = ", ".join(sorted(self.signatures))
            raise invalid(f"Serving signature name: {wanted!r} not found in signature def; the model has {known}")
        return self.signatures[wanted]

    def run(self, signature: Signature, inputs: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """Return the outputs for inputs that the signature has checked.

        Raises:
            ServingError: what TensorFlow says.
        """
        try:
            tensors = {
                name: tf.constant(array, dtype=signature.inputs[name].type_name) for name, array in inputs.items()
            }
            outputs = self._functions[signature.name](**tensors)
            return {name: _to_array(tensor) for name, tensor in outputs.items()}
        except tf.errors.OpError as error:
            raise convert_error(error) from error


def load_model(folder: Path, version: int, expected: str | None = None) -> Model:
    """Return the version in `folder`, once its content has been checked; nothing of it serves yet.

    Raises:
        ServingError: what is wrong with the version, for its status.
    """
    try:
        before = read_stamp(folder)
        content = check_content(folder, expected)
        graph = _read_graph(folder)
        loaded = tf.saved_model.load(str(folder), tags=[tf.saved_model.SERVING])
        model = Model(version, content, loaded, graph)
        if read_stamp(folder) != before:
            raise ServingError(Code.ABORTED, "the files changed while they were loaded")
        return model
    except tf.errors.OpError as error:
        raise convert_error(error) from error
    except ServingError:
        raise
    except OSError as error:
        raise ServingError(Code.NOT_FOUND, f"cannot read the version: {error}") from error
    except Exception as error:
        # For damaged files, TensorFlow raises what its loader stumbles over: IndexError, KeyError, AttributeError.
        problem = f"{type(error).__name__}: {error}"
        raise ServingError(Code.DATA_LOSS, f"cannot load the SavedModel from {folder}: {problem}") from error


def settle_memory() -> None:
    """Free what versions that were dropped have held, and keep the garbage collector from what stays.

    TensorFlow and a loaded version are many objects. A request of many small lists makes the collector look at all of
    them, which stops the server for a tenth of a second.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def convert_error(error: Any) -> ServingError:
    """Return TensorFlow's error with its code and the first line of its message, without the graph around it."""
    code = _CODES.get(error.error_code, Code.UNKNOWN)
    lines = [line.strip() for line in str(error.message).splitlines()]
    told = [line for line in lines if line and not line.startswith(_AROUND_MESSAGES)]
    return ServingError(code, told[0] if told else "the model failed")


def parse_signature(name: str, definition: Any) -> Signature:
    """Return the signature that a SignatureDef describes.

    Raises:
        ServingError: it takes or returns what the API cannot carry.
    """
    try:
        inputs = {key: _parse_tensor(key, info) for key, info in definition.inputs.items()}
        outputs = {key: _parse_tensor(key, info) for key, info in definition.outputs.items()}
    except (TypeError, ValueError) as error:
        raise ServingError(Code.UNIMPLEMENTED, f"signature {name} cannot be served: {error}") from error
    return Signature(name, inputs, outputs, definition.method_name)


def _parse_signatures(definitions: Mapping[str, Any]) -> dict[str, Signature]:
    """Return what can be served of a model's signatures.

    Raises:
        ServingError: none can.
    """
    found, problems = {}, []
    for name, definition in definitions.items():
        try:
            found[name] = parse_signature(name, definition)
        except ServingError as error:
            problems.append(error.message)
            log.warning("%s", error)
    if not found:
        raise invalid("; ".join(problems) or "the model has no signatures")
    return found


def _to_array(tensor: Any) -> np.ndarray[Any, Any]:
    value = tensor.numpy()
    if isinstance(value, np.ndarray):
        return value
    # A scalar is bytes, or a number of NumPy.
    array = np.empty((), object if isinstance(value, bytes) else value.dtype)
    array[()] = value
    return array


def _parse_tensor(name: str, info: Any) -> TensorSpec:
    if info.WhichOneof("encoding") not in ("name", None):
        raise ValueError(f"{name} is sparse or composite, which requests cannot hold")
    kind = tf.as_dtype(info.dtype)
    if np.dtype(kind.as_numpy_dtype) == object and kind != tf.string:
        raise ValueError(f"{name} is a {kind.name}, which requests cannot hold")
    shape = None
    if not info.tensor_shape.unknown_rank:
        shape = tuple(None if part.size < 0 else part.size for part in info.tensor_shape.dim)
    return TensorSpec(name, np.dtype(kind.as_numpy_dtype), kind.name, shape)


def _read_graph(folder: Path) -> meta_graph_pb2.MetaGraphDef:
    """Return the graph for serving of a SavedModel."""
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((folder / GRAPH_FILE).read_bytes())
    except DecodeError as error:
        raise ServingError(Code.DATA_LOSS, f"{GRAPH_FILE} is damaged: {error}") from error
    for graph in saved.meta_graphs:
        if set(graph.meta_info_def.tags) == {tf.saved_model.SERVING}:
            return graph
    raise ServingError(Code.NOT_FOUND, f"{GRAPH_FILE} holds no graph with the tag {tf.saved_model.SERVING}")
