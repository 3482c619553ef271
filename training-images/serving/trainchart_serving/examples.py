"""Requests to classify and regress: examples in, labels with scores or values out.

Their signatures take serialized examples as one input of strings. TensorFlow 2 saves every signature with the method
name of predict, so what a signature takes and returns decides, and not its method name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow_serving.apis import classification_pb2, regression_pb2

from trainchart_serving.failures import Code, ServingError, invalid
from trainchart_serving.signature import Signature

CLASSES, SCORES, OUTPUTS = "classes", "scores", "outputs"
_BYTES = np.dtype(object)


def check_classifies(signature: Signature) -> None:
    """Check that the signature takes examples and returns classes, scores or both.

    Raises:
        ServingError: INVALID_ARGUMENT.
    """
    if not _takes_examples(signature) or not signature.outputs or signature.outputs.keys() - {CLASSES, SCORES}:
        raise invalid(
            f"signature {signature.name} cannot classify: that takes one input of serialized examples (strings), and"
            f" outputs called {CLASSES} (strings), {SCORES} (numbers), or both"
        )


def check_regresses(signature: Signature) -> None:
    """Check that the signature takes examples and returns one output of numbers.

    Raises:
        ServingError: INVALID_ARGUMENT.
    """
    if not _takes_examples(signature) or set(signature.outputs) != {OUTPUTS}:
        raise invalid(
            f"signature {signature.name} cannot regress: that takes one input of serialized examples (strings), and"
            f" an output of numbers called {OUTPUTS}"
        )


def serialize_examples(signature: Signature, given: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the one input of the signature for an Input of the API; a context's features go into every example.

    Raises:
        ServingError: INVALID_ARGUMENT, for no examples.
    """
    kind = given.WhichOneof("kind")
    examples = list(getattr(given, kind).examples) if kind else []
    if not examples:
        raise invalid("Input is empty: give at least one example")
    if kind == "example_list_with_context":
        examples = [_add_context(example, given.example_list_with_context.context) for example in examples]
    array = np.empty(len(examples), _BYTES)
    array[:] = [example.SerializeToString() for example in examples]
    return dict.fromkeys(signature.inputs, array)


def make_classifications(outputs: Mapping[str, np.ndarray[Any, Any]], examples: int) -> Any:
    """Return the result of the API for the outputs of a signature that classifies.

    Raises:
        ServingError: the model returned other shapes than one row an example.
    """
    arrays = {name: _check_rows(name, array, examples) for name, array in outputs.items()}
    labels, scores = arrays.get(CLASSES), arrays.get(SCORES)
    columns = next(iter(arrays.values())).shape[1]
    if any(array.shape[1] != columns for array in arrays.values()):
        raise ServingError(Code.INTERNAL, f"the model returned different numbers of {CLASSES} and {SCORES}")
    result = classification_pb2.ClassificationResult()
    for row in range(examples):
        found = result.classifications.add()
        for column in range(columns):
            label = b"" if labels is None else labels[row, column]
            text = label.decode(errors="replace") if isinstance(label, bytes) else str(label)
            found.classes.add(label=text, score=0.0 if scores is None else float(scores[row, column]))
    return result


def make_regressions(outputs: Mapping[str, np.ndarray[Any, Any]], examples: int) -> Any:
    """Return the result of the API for the outputs of a signature that regresses."""
    values = _check_rows(OUTPUTS, outputs[OUTPUTS], examples)
    if values.shape[1] != 1:
        raise ServingError(Code.INTERNAL, f"the model returned {values.shape[1]} values for an example, not one")
    result = regression_pb2.RegressionResult()
    for value in values[:, 0]:
        result.regressions.add(value=float(value))
    return result


def _takes_examples(signature: Signature) -> bool:
    specs: Sequence[Any] = list(signature.inputs.values())
    return len(specs) == 1 and specs[0].dtype == _BYTES and specs[0].accepts((1,))


def _check_rows(name: str, array: np.ndarray[Any, Any], examples: int) -> np.ndarray[Any, Any]:
    """Return an output as one row an example."""
    if array.ndim not in (1, 2) or array.shape[0] != examples:
        raise ServingError(Code.INTERNAL, f"the model returned {name} of shape {list(array.shape)}")
    return array.reshape(examples, -1)


def _add_context(example: Any, context: Any) -> Any:
    """Return the example with the context's features, where it does not have them itself."""
    whole = type(example)()
    whole.CopyFrom(context)
    for name, feature in example.features.feature.items():
        whole.features.feature[name].CopyFrom(feature)
    return whole
