"""What a signature of a SavedModel takes and returns, and whether a request fits it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainchart_serving.failures import invalid

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
DEFAULT_SIGNATURE = "serving_default"
Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a signature."""

    name: str
    dtype: np.dtype[Any]
    """`object` for strings of bytes."""
    type_name: str
    shape: tuple[int | None, ...] | None
    """None where not even the rank is known."""

    @property
    def is_batch(self) -> bool:
        """Whether the first dimension is the examples', of any number."""
        return self.shape is not None and len(self.shape) > 0 and self.shape[0] is None

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Say whether an array of `shape` fits."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            wanted is None or wanted == found for wanted, found in zip(self.shape, shape, strict=True)
        )


@dataclass(frozen=True)
class Signature:
    """A function of a model, by what goes in and what comes out."""

    name: str
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    method: str = ""

    @property
    def is_batch(self) -> bool:
        """Whether the examples of several requests can be joined into one call."""
        return bool(self.inputs) and all(spec.is_batch for spec in (*self.inputs.values(), *self.outputs.values()))

    def check(self, arrays: Arrays) -> None:
        """Check that a request gives every input and nothing else, each in its type and shape.

        Raises:
            ServingError: INVALID_ARGUMENT.
        """
        if missing := sorted(self.inputs.keys() - arrays.keys()):
            raise invalid(f"signature {self.name}: input {', '.join(missing)} is missing; {self._describe_inputs()}")
        if unknown := sorted(arrays.keys() - self.inputs.keys()):
            raise invalid(f"signature {self.name}: unknown input {', '.join(unknown)}; {self._describe_inputs()}")
        for name, spec in self.inputs.items():
            array = arrays[name]
            if array.dtype != spec.dtype:
                raise invalid(f"input {name}: the type is {array.dtype}, but the model takes {spec.type_name}")
            if not spec.accepts(array.shape):
                raise invalid(
                    f"input {name}: the shape is {show_shape(array.shape)}, but the model takes {_show(spec)}"
                )
        if self.is_batch and len({array.shape[0] for array in arrays.values()}) > 1:
            raise invalid(f"signature {self.name}: the inputs hold different numbers of examples")

    def _describe_inputs(self) -> str:
        return "the model takes " + ", ".join(f"{name} {_show(spec)}" for name, spec in sorted(self.inputs.items()))


def show_shape(shape: tuple[int | None, ...] | None) -> str:
    """Return a shape as TensorFlow writes it."""
    return "any shape" if shape is None else f"[{','.join('?' if size is None else str(size) for size in shape)}]"


def _show(spec: TensorSpec) -> str:
    return f"{spec.type_name} {show_shape(spec.shape)}"


def make_synthetic_inputs(signature: Signature, examples: int = 1) -> dict[str, np.ndarray[Any, Any]]:
    """Return inputs of zeros and empty strings that fit the signature, with 1 for every size that is not fixed."""
    inputs = {}
    for name, spec in signature.inputs.items():
        shape = [1 if size is None else size for size in spec.shape or ()]
        if spec.is_batch:
            shape[0] = examples
        inputs[name] = np.full(shape, b"", dtype=object) if spec.dtype == object else np.zeros(shape, spec.dtype)
    return inputs
