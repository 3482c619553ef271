"""What the signatures of a served model take and return, as its metadata say, and in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_SIGNATURE = "serving_default"
_TYPES = {
    "DT_HALF": "float16",
    "DT_BFLOAT16": "bfloat16",
    "DT_FLOAT": "float32",
    "DT_DOUBLE": "float64",
    "DT_BOOL": "bool",
    "DT_STRING": "string",
    **{f"DT_INT{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"DT_UINT{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""What JSON can hold."""
_PLURALS = {"string": "strings", "bool": "booleans"}
_MOST_DIMENSIONS = 64
_SIZE = re.compile("-?[0-9]{1,19}")


@dataclass(frozen=True)
class Tensor:
    """An input or output of a signature."""

    name: str
    type_name: str
    """As in NumPy; of others, TensorFlow's own name."""
    shape: tuple[int | None, ...] | None
    """None for a size of any number; None as a whole where not even the number of dimensions is fixed."""

    @property
    def is_batch(self) -> bool:
        """Whether the first dimension is the examples', of any number."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    @property
    def is_json(self) -> bool:
        """Whether its values can be given as JSON."""
        return self.type_name in _TYPES.values()

    @property
    def technical(self) -> str:
        """Type and shape as TensorFlow writes them."""
        shape = "any shape" if self.shape is None else f"[{','.join('?' if n is None else str(n) for n in self.shape)}]"
        return f"{self.type_name} {shape}"


@dataclass(frozen=True)
class Signature:
    """A function of a model."""

    name: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]

    @property
    def is_batch(self) -> bool:
        """Whether it takes any number of examples at a time."""
        return bool(self.inputs) and all(each.is_batch for each in (*self.inputs.values(), *self.outputs.values()))


def parse_metadata(document: Any) -> dict[str, Signature]:
    """Return the signatures of a model by name. Raises ValueError where the document is not a model's metadata."""
    found = {}
    for name, body in sorted(_mapping(document, "metadata", "signature_def", "signature_def").items()):
        # TensorFlow's own, which no one calls.
        if not name.startswith("__"):
            found[name] = Signature(name, _read_tensors(body, "inputs"), _read_tensors(body, "outputs"))
    if not found:
        raise ValueError("they name no signature")
    return found


def _read_tensors(body: Any, part: str) -> dict[str, Tensor]:
    tensors = _mapping(body, part)
    return {name: _read_tensor(name, tensors[name]) for name in sorted(tensors)}


def _read_tensor(name: str, info: Any) -> Tensor:
    dtype = str(_mapping(info).get("dtype"))
    return Tensor(name, _TYPES.get(dtype, dtype), _read_shape(_mapping(info).get("tensor_shape")))


def _read_shape(shape: Any) -> tuple[int | None, ...] | None:
    body = _mapping(shape)
    dimensions = body.get("dim", [])
    if body.get("unknown_rank") is True:
        return None
    if not isinstance(dimensions, list) or len(dimensions) > _MOST_DIMENSIONS:
        raise ValueError("a shape is not a list of dimensions")
    sizes = [str(_mapping(each).get("size", "0")) for each in dimensions]
    if not all(map(_SIZE.fullmatch, sizes)):
        raise ValueError("the size of a dimension is not a whole number")
    return tuple(None if size.startswith("-") else int(size) for size in sizes)


def _mapping(document: Any, *path: str) -> Mapping[str, Any]:
    for key in path:
        document = _mapping(document).get(key)
    if not isinstance(document, Mapping):
        raise ValueError(f"they hold no {path[-1] if path else 'object'}")
    return document


def describe_tensor(tensor: Tensor) -> str:
    """Say in words what one example holds of a tensor, or, without examples, what a request holds."""
    plural = _PLURALS.get(tensor.type_name, f"{tensor.type_name} numbers")
    if tensor.shape is None:
        return f"{plural}, in any shape"
    sizes = tensor.shape[1:] if tensor.is_batch else tensor.shape
    what = plural if any(size != 1 for size in sizes) else plural.removesuffix("s")
    counted = " × ".join("any number" if size is None else str(size) for size in sizes) or "one"
    unit = "of " if None in sizes else ""
    return f"{counted} {unit}{what}"


def describe_signature(signature: Signature) -> list[str]:
    """Return lines that say what a signature takes and returns."""
    batch = signature.is_batch
    rows = [
        ("takes any number of examples, each with:" if batch else "takes in a request:", signature.inputs),
        ("returns for each:" if batch else "returns:", signature.outputs),
    ]
    width = max(map(len, (*signature.inputs, *signature.outputs)), default=0)
    lines = []
    for heading, tensors in rows:
        lines.append(heading)
        lines += [f"  {name:{width}}  {describe_tensor(tensor)}" for name, tensor in tensors.items()]
    return lines


def expect_inputs(signature: Signature) -> str:
    """Return what a signature takes, in one line."""
    inputs = ", ".join(f"{name} {tensor.technical}" for name, tensor in signature.inputs.items())
    return f"{signature.name} takes {inputs or 'no inputs'}"


def make_zeros(signature: Signature) -> dict[str, Any] | None:
    """Return the body of a request with zeros and empty strings; None where JSON cannot hold the inputs."""
    if not all(tensor.is_json for tensor in signature.inputs.values()):
        return None
    values = {name: _fill(tensor, skips=int(signature.is_batch)) for name, tensor in signature.inputs.items()}
    value = next(iter(values.values())) if len(values) == 1 else values
    chosen = {} if signature.name == DEFAULT_SIGNATURE else {"signature_name": signature.name}
    return {**chosen, "instances": [value]} if signature.is_batch else {**chosen, "inputs": value}


def count_values(signature: Signature) -> int:
    """Return how many values `make_zeros` makes at most: those of lists that nothing is in count as well."""
    total = 0
    for tensor in signature.inputs.values():
        number = 1
        for size in tensor.shape or ():
            number *= size or 1
        total += number
    return total


def _fill(tensor: Tensor, *, skips: int) -> Any:
    zero: Any = {"string": "", "bool": False}.get(tensor.type_name, 0)
    value = 0.0 if "float" in tensor.type_name else zero
    for size in reversed((tensor.shape or ())[skips:]):
        value = [value] * (1 if size is None else size)
    return value
