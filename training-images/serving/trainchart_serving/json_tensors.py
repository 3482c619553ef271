"""Bodies of predict requests: tensors from and to JSON, by rows (`instances`) or columns (`inputs`). Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainchart_serving.failures import Code, ServingError, invalid
from trainchart_serving.signature import Signature, TensorSpec

_B64 = "b64"
_BYTES_SUFFIX = "_bytes"
_DEEPEST = 64
"""NumPy's limit of dimensions."""
_KINDS = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "V": "iuf"}
"""Which kinds of JSON values (of NumPy) make a tensor of which kind; V is bfloat16 and others like it."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a request; NaN and Infinity are numbers, as in TensorFlow Serving.

    Raises:
        ServingError: INVALID_ARGUMENT.
    """
    try:
        value = json.loads(body)
    except RecursionError:
        raise invalid("JSON Parse error: nested too deep") from None
    except ValueError as error:
        raise invalid(f"JSON Parse error: {error}") from error
    if not isinstance(value, dict):
        raise invalid(f"the body is a JSON {_name(value)}, but must be an object")
    return value


def read_signature_name(body: Mapping[str, Any]) -> str:
    """Return the name of the signature that a request asks for, "" for the default. Raises ServingError."""
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"signature_name: {_name(name)} is not a string")
    return name


def read_inputs(signature: Signature, body: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs of a predict request.

    Raises:
        ServingError: INVALID_ARGUMENT.
    """
    is_row = is_by_rows(body)
    columns = _gather_rows(signature, body["instances"]) if is_row else _gather_columns(signature, body["inputs"])
    found = {}
    for name, value in columns.items():
        if name not in signature.inputs:
            raise invalid(f"unknown input {name}; the model takes {', '.join(signature.inputs)}")
        found[name] = _make_array(signature.inputs[name], value)
    return found


def is_by_rows(body: Mapping[str, Any]) -> bool:
    """Say whether a request lists its examples. Raises ServingError where it cannot be told."""
    if ("instances" in body) == ("inputs" in body):
        raise invalid("give the examples either as a list, in instances, or input by input, in inputs")
    return "instances" in body


def dump_prediction(outputs: Mapping[str, np.ndarray[Any, Any]], examples: int, *, is_row: bool) -> bytes:
    """Return the body that answers a predict request.

    Raises:
        ServingError: the outputs cannot be written in that format.
    """
    values: Any
    if not is_row:
        written = {name: _write_array(name, array) for name, array in outputs.items()}
        values = written if len(written) != 1 else next(iter(written.values()))
        return json.dumps({"outputs": values}).encode()
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != examples:
            raise invalid(f"output {name} has no value for each of the {examples} instances: send inputs instead")
    written = {name: _write_array(name, array) for name, array in outputs.items()}
    if len(written) == 1:
        values = next(iter(written.values()))
    else:
        values = [dict(zip(written, row, strict=True)) for row in zip(*written.values(), strict=True)]
    return json.dumps({"predictions": values}).encode()


def _gather_rows(signature: Signature, instances: Any) -> dict[str, Any]:
    if not isinstance(instances, list) or not instances:
        raise invalid("instances: must be a list with at least one element")
    if not any(_is_named(instance) for instance in instances):
        return {_the_input(signature): instances}
    keys = instances[0].keys() if isinstance(instances[0], dict) else set()
    if not all(_is_named(instance) and instance.keys() == keys for instance in instances):
        raise invalid("instances: all must be objects with the same names of inputs")
    return {name: [instance[name] for instance in instances] for name in keys}


def _gather_columns(signature: Signature, inputs: Any) -> dict[str, Any]:
    return dict(inputs) if _is_named(inputs) else {_the_input(signature): inputs}


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() != {_B64}


def _the_input(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        names = ", ".join(signature.inputs)
        raise invalid(f"the model takes {len(signature.inputs)} inputs: give each by its name ({names})")
    return next(iter(signature.inputs))


def _make_array(spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
    if spec.dtype == object:
        return _make_strings(spec.name, value)
    if spec.dtype.kind not in _KINDS:
        raise invalid(f"input {spec.name}: {spec.type_name} cannot be given as JSON")
    try:
        array = np.array(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise invalid(f"input {spec.name}: the lists are nested too deep, or of different lengths") from error
    if array.size == 0:
        return array.astype(spec.dtype)
    if array.dtype.kind not in _KINDS[spec.dtype.kind]:
        raise invalid(f"input {spec.name}: the values are not of the type {spec.type_name}")
    if spec.dtype.kind in "iu":
        limits = np.iinfo(spec.dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise invalid(f"input {spec.name}: a value is out of range for {spec.type_name}")
    with np.errstate(over="ignore"):  # what is too large for the type is Infinity
        return array.astype(spec.dtype)


def _make_strings(name: str, value: Any) -> np.ndarray[Any, Any]:
    shape: list[int] = []
    level = value
    while isinstance(level, list):
        shape.append(len(level))
        level = level[0] if level else None
    if len(shape) > _DEEPEST:
        raise invalid(f"input {name}: the lists are nested too deep")
    leaves = [value]
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in leaves):
            raise invalid(f"input {name}: the lists are of different lengths")
        leaves = [item for part in leaves for item in part]
    array = np.empty(len(leaves), object)
    array[:] = [read_bytes(name, leaf) for leaf in leaves]
    return array.reshape(shape)


def read_bytes(name: str, value: Any) -> bytes:
    """Return a string of a request as bytes: text, or an object with Base64. Raises ServingError."""
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and value.keys() == {_B64} and isinstance(value[_B64], str):
            return base64.b64decode(value[_B64], validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        raise invalid(f"{name}: not a valid string: {error}") from error
    raise invalid(f'{name}: {_name(value)} is neither a string nor {{"{_B64}": "…"}}')


def _write_array(name: str, array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == object:
        texts = np.empty(array.shape, object)
        texts.flat[:] = [_write_bytes(item, name.endswith(_BYTES_SUFFIX)) for item in array.flat]
        return texts.tolist()
    if array.dtype.kind == "V":
        return array.astype(np.float32).tolist()
    if array.dtype.kind not in "biuf":
        raise ServingError(Code.UNIMPLEMENTED, f"output {name}: {array.dtype.name} cannot be written as JSON")
    return array.tolist()


def _write_bytes(value: Any, is_base64: bool) -> Any:
    data = value if isinstance(value, bytes) else str(value).encode()
    if not is_base64:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass  # JSON is text: what is not is written as Base64, too
    return {_B64: base64.b64encode(data).decode()}


def _name(value: Any) -> str:
    names = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
