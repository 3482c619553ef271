"""Tensors as protocol buffers, from and to arrays of NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2

from trainchart_serving.failures import invalid

_MOST_REPEATED = 2**20
"""A tensor may give one value for all of its elements, up to this many: a small request must not fill the memory."""
_FIELDS = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int_val"),
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "object": "string_val",
}


def parse_tensor(name: str, proto: Any) -> np.ndarray[Any, Any]:
    """Return the array of an input called `name`.

    Raises:
        ServingError: INVALID_ARGUMENT, for a tensor that contradicts itself.
    """
    if proto.tensor_shape.unknown_rank or any(part.size < 0 for part in proto.tensor_shape.dim):
        raise invalid(f"input {name}: the tensor's shape is not known")
    elements = math.prod(part.size for part in proto.tensor_shape.dim)
    if elements > _MOST_REPEATED and elements > proto.ByteSize():
        raise invalid(f"input {name}: the tensor has {elements} elements, but gives fewer values")
    try:
        array = tf.make_ndarray(proto)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise invalid(f"input {name}: not a valid tensor: {error}") from error
    if elements and not _has_values(proto):
        raise invalid(f"input {name}: the tensor has {elements} elements, but gives no values")
    return np.asarray(array)


def dump_tensor(array: np.ndarray[Any, Any], *, is_packed: bool = False) -> Any:
    """Return the array as TensorFlow Serving answers it: each value in the field of its type, or all packed as bytes.

    Clients read fields such as float_val directly.
    """
    field = _FIELDS.get(array.dtype.name)
    if field is None or (is_packed and field != "string_val"):
        return tf.make_tensor_proto(array)
    proto = tensor_pb2.TensorProto(dtype=tf.as_dtype(array.dtype).as_datatype_enum)
    for size in array.shape:
        proto.tensor_shape.dim.add().size = size
    getattr(proto, field).extend(array.ravel().tolist())
    return proto


def _has_values(proto: Any) -> bool:
    return any(field.name not in ("dtype", "tensor_shape", "version_number") for field, _ in proto.ListFields())
