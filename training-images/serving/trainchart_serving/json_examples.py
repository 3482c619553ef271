"""Bodies of classify and regress requests: examples from JSON, results to JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tensorflow.core.example import example_pb2
from tensorflow_serving.apis import input_pb2

from trainchart_serving.failures import invalid
from trainchart_serving.json_tensors import read_bytes


def read_examples(body: Mapping[str, Any]) -> Any:
    """Return the Input of the API that a request holds.

    Raises:
        ServingError: INVALID_ARGUMENT.
    """
    examples = body.get("examples")
    if not isinstance(examples, list) or not examples:
        raise invalid("examples: must be a list with at least one object")
    made = [_make_example(f"examples[{index}]", example) for index, example in enumerate(examples)]
    if "context" not in body:
        return input_pb2.Input(example_list=input_pb2.ExampleList(examples=made))
    context = _make_example("context", body["context"])
    return input_pb2.Input(
        example_list_with_context=input_pb2.ExampleListWithContext(examples=made, context=context),
    )


def dump_classifications(result: Any) -> bytes:
    """Return the body that answers a classify request."""
    rows = [[[each.label, each.score] for each in found.classes] for found in result.classifications]
    return json.dumps({"results": rows}).encode()


def dump_regressions(result: Any) -> bytes:
    """Return the body that answers a regress request."""
    return json.dumps({"results": [found.value for found in result.regressions]}).encode()


def _make_example(where: str, features: Any) -> Any:
    if not isinstance(features, dict):
        raise invalid(f"{where}: must be an object of features")
    example = example_pb2.Example()
    for name, value in features.items():
        try:
            _fill(f"{where}.{name}", example.features.feature[name], value)
        except (ValueError, TypeError, OverflowError) as error:
            raise invalid(f"{where}.{name}: {error}") from error
    return example


def _fill(where: str, feature: Any, value: Any) -> None:
    values = value if isinstance(value, list) else [value]
    kinds = {type(item) for item in values}
    if kinds <= {int}:
        feature.int64_list.value.extend(values)
    elif kinds <= {int, float}:
        feature.float_list.value.extend(float(item) for item in values)
    elif kinds <= {str, dict}:
        feature.bytes_list.value.extend(read_bytes(where, item) for item in values)
    else:
        raise invalid(f"{where}: must be numbers or strings, one or a list of them")
