"""What a user gives as input of a model → the body of a request, and its answer → outputs by name. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.json_documents import parse_json
from trainchart.serving.numpy_files import parse_npy, parse_npz
from trainchart.serving.signature import Signature, Tensor

MOST_VALUES = 5_000_000
"""Of an answer, lists counted too: as objects of Python, more would fill the memory."""
_B64 = "b64"
_ROWS, _COLUMNS = "instances", "inputs"
_LONGEST_VECTOR = 32
"""Of which each value has a line."""
_WIDEST_VALUE = 200
_MOST_LINES = 500
"""Of several examples."""
_SHORTENED = "…"


@dataclass(frozen=True)
class Request:
    """The body of a request, and whether it was made of one example."""

    body: bytes
    is_single: bool


@dataclass(frozen=True)
class Prediction:
    """What a model answers: of one example its outputs, else a list for each output."""

    outputs: Mapping[str, Any]
    examples: int | None
    """None for one example that was given as such, or where outputs are not by example."""


def parse_input(name: str, content: bytes, limit: int) -> Any:
    """Return what a file says: JSON, or by its name arrays of NumPy as lists. Raises ValueError."""
    if name.endswith(".npz"):
        arrays = parse_npz(content, limit)
        # What numpy.savez calls an array without a name.
        return arrays["arr_0"] if arrays.keys() == {"arr_0"} else arrays
    if name.endswith(".npy"):
        return parse_npy(content)
    return parse_json(content)


def read_signature_name(value: Any) -> str:
    """Return the signature that a whole request names; empty where none is named."""
    name = value.get("signature_name") if _is_whole(value) else None
    return name if isinstance(name, str) else ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, Mapping) and (_ROWS in value or _COLUMNS in value)


def make_request(value: Any, signature: Signature, *, is_named: bool) -> Request:
    """Return the request for what a user gives; its signature is named in it where `is_named`.

    Raises:
        ValueError: the model takes something else, in words.
    """
    chosen = {"signature_name": signature.name} if is_named else {}
    if _is_whole(value):
        # A whole request is sent as it is.
        return Request(_dump({**value, **chosen}), is_single=False)
    if isinstance(value, list) and value and all(map(_is_object, value)):
        return Request(_dump({**chosen, _ROWS: value}), is_single=False)
    columns = dict(value) if _is_object(value) else {_find_only(signature): value}
    _require_names(columns, signature)
    tensors = [signature.inputs[name] for name in columns]
    is_single = bool(tensors) and all(_is_one_example(columns[tensor.name], tensor) for tensor in tensors)
    if is_single:
        columns = {name: [column] for name, column in columns.items()}
    if not signature.is_batch:
        return Request(_dump({**chosen, _COLUMNS: columns}), is_single=False)
    if not _is_object(value):
        # A list of examples, as every guide to the API shows it.
        return Request(_dump({**chosen, _ROWS: next(iter(columns.values()))}), is_single)
    return Request(_dump({**chosen, _COLUMNS: columns}), is_single)


def _dump(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, separators=(",", ":")).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _is_object(value: object) -> bool:
    """Say whether a value names inputs: an object that is not the Base64 of a string."""
    return isinstance(value, Mapping) and value.keys() != {_B64}


def _find_only(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        shown = json.dumps(dict.fromkeys(signature.inputs, "…"), ensure_ascii=False)
        raise ValueError(f"the model takes {len(signature.inputs)} inputs: give each by its name, as in {shown}")
    return next(iter(signature.inputs))


def _require_names(columns: Mapping[str, Any], signature: Signature) -> None:
    if unknown := sorted(columns.keys() - signature.inputs.keys()):
        raise ValueError(f"the model has no input {', '.join(unknown)}")
    if missing := sorted(signature.inputs.keys() - columns.keys()):
        raise ValueError(f"the input {', '.join(missing)} is missing")


def _is_one_example(value: Any, tensor: Tensor) -> bool:
    return tensor.is_batch and _depth(value) == len(tensor.shape or ()) - 1


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        depth += 1
        value = value[0] if value else None
    return depth


def read_answer(document: Any, signature: Signature, *, is_single: bool) -> Prediction:
    """Return the outputs of an answer by name. Raises ValueError where it is no answer to a request to predict."""
    if not isinstance(document, Mapping) or len(document.keys() & {"predictions", "outputs"}) != 1:
        raise ValueError("it has neither predictions nor outputs")
    is_by_rows = "predictions" in document
    value = document["predictions" if is_by_rows else "outputs"]
    names = list(signature.outputs)
    if len(names) == 1:
        columns = {names[0]: value}
    elif is_by_rows and isinstance(value, list) and all(isinstance(row, Mapping) for row in value):
        if len(names) * len(value) > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values")
        columns = {name: [row.get(name) for row in value] for name in names}
    elif not is_by_rows and isinstance(value, Mapping):
        columns = {name: value.get(name) for name in names}
    else:
        raise ValueError(f"it does not name the outputs {', '.join(names)}")
    if not is_by_rows and not signature.is_batch:
        return Prediction(columns, None)
    sizes = {len(column) if isinstance(column, list) else -1 for column in columns.values()}
    if len(sizes) > 1 or -1 in sizes:
        raise ValueError("its outputs have different numbers of examples")
    (size,) = sizes or {0}
    if is_single and size == 1:
        return Prediction({name: column[0] for name, column in columns.items()}, None)
    return Prediction(columns, size)


def spell_numbers(value: Any) -> Any:
    """Return an answer in which NaN and Infinity, which JSON lacks, are strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [spell_numbers(part) for part in value]
    if isinstance(value, Mapping):
        return {name: spell_numbers(part) for name, part in value.items()}
    return value


def draw_prediction(prediction: Prediction) -> list[str]:
    """Return a table: each output with its values, of several examples with the example's number first.

    Of very many examples, the first ones.
    """
    rows: list[tuple[str, ...]] = []
    more = 0
    if prediction.examples in (None, 1):
        of_one = prediction.outputs if prediction.examples is None else {k: v[0] for k, v in prediction.outputs.items()}
        rows = [row for name, value in of_one.items() for row in _draw_output(name, value)]
    else:
        rows.append(("example", "output", "value"))
        drawn = min(prediction.examples, max(1, _MOST_LINES // max(1, len(prediction.outputs))))
        more = prediction.examples - drawn
        for number in range(drawn):
            rows += [(str(number), name, _show(column[number])) for name, column in prediction.outputs.items()]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)] if rows else []
    lines = ["  ".join([*(f"{row[at]:{width}}" for at, width in enumerate(widths)), row[-1]]) for row in rows]
    return [*lines, f"{_SHORTENED} and {more} more: --format json shows all"] if more else lines


def _draw_output(name: str, value: Any) -> list[tuple[str, ...]]:
    is_vector = isinstance(value, list) and not any(isinstance(part, list) for part in value)
    if is_vector and 0 < len(value) <= _LONGEST_VECTOR:
        return [(f"{name}[{at}]", _show(part)) for at, part in enumerate(value)]
    return [(name, _show(value))]


def _show(value: Any) -> str:
    """Return a value in a line, numbers with six digits, shortened where it is long."""
    parts: list[str] = []
    length = 0
    # The parts still to be written, the next one at the end: an answer may be nested deeper than Python's stack.
    waiting: list[Any] = [(value,)]
    while waiting and length <= _WIDEST_VALUE:
        part = waiting.pop()
        if isinstance(part, tuple) and isinstance(part[0], list):
            items = [each for item in part[0][:_WIDEST_VALUE] for each in (", ", (item,))][1:]
            waiting += ["]", *reversed(items), "["]
            continue
        text = part if isinstance(part, str) else _write(part[0])
        parts.append(text)
        length += len(text)
    text = "".join(parts)
    return text if not waiting and len(text) <= _WIDEST_VALUE else f"{text[:_WIDEST_VALUE]}{_SHORTENED}"


def _write(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return _SHORTENED


def is_shortened(lines: list[str]) -> bool:
    return any(line.endswith(_SHORTENED) for line in lines)
