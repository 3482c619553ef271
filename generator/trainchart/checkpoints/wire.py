"""What a helper pod prints, and how it is read again: lines of a log that hold one JSON document, packed. Pure.

The pod may be anyone's: what it prints is read within bounds, and becomes the types of this package or an error.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainchart.checkpoints.listing import Checkpoint, CheckpointList, parse_metrics
from trainchart.checkpoints.results import Pruning, Verified
from trainchart.errors import ChecksFailed, Problem, ToolError, TrainchartError, UsageError
from trainchart.json_documents import parse_json
from trainchart_training.saving.catalogue import Marker, VariableShape
from trainchart_training.saving.origin import dump_origin, parse_origin

NOTE = "trainchart-note "
_PART = "trainchart-part "
_END = "trainchart-end "
_PART_LENGTH = 4000
"""Container runtimes cut lines of 16 KiB."""
_LIMIT = 64 * 1024 * 1024
"""Bytes of a document."""
_VALUES_LIMIT = 2_000_000
_NUMBERS_LIMIT = 2**63
_TIMES_LIMIT = 1e11
"""Unix seconds: the year 5138."""
_ERRORS = {error.__name__: error for error in (ToolError, ChecksFailed, UsageError)}


def pack_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that hold a document."""
    text = base64.b64encode(zlib.compress(json.dumps(document).encode())).decode()
    for start in range(0, len(text), _PART_LENGTH):
        yield f"{_PART}{text[start : start + _PART_LENGTH]}"
    yield f"{_END}{len(text)}"


def unpack_lines(lines: Iterable[str]) -> dict[str, Any] | None:
    """Return the document among lines, which may hold others; None where it is not there, or not whole yet.

    Raises ValueError where it cannot be read.
    """
    parts: list[str] = []
    for line in lines:
        if line.startswith(_PART):
            parts.append(line[len(_PART) :].strip())
        elif line.startswith(_END):
            text = "".join(parts)
            if line[len(_END) :].strip() != str(len(text)):
                raise ValueError("a part of it is missing")
            return _unpack(text)
    return None


def _unpack(text: str) -> dict[str, Any]:
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(base64.b64decode(text), _LIMIT)
    except zlib.error as error:
        raise ValueError("it is damaged") from error
    if not unpacker.eof:
        raise ValueError("it is truncated, or too large")
    # Of so many values, the objects would take gigabytes.
    if sum(map(content.count, (b",", b"[", b"{"))) > _VALUES_LIMIT:
        raise ValueError("it holds too many values")
    document = parse_json(content)
    if not isinstance(document, dict):
        raise ValueError("it is not a trainchart document")
    return document


def rename_places(document: Any, old: str, new: str) -> Any:
    """Return a document in whose texts the path `old` is called `new`."""
    if isinstance(document, str):
        return document.replace(old, new)
    if isinstance(document, list):
        return [rename_places(each, old, new) for each in document]
    if isinstance(document, dict):
        return {key: rename_places(each, old, new) for key, each in document.items()}
    return document


def dump_error(error: TrainchartError) -> dict[str, Any]:
    problems = [{"message": each.message, "where": each.where, "hint": each.hint} for each in error.problems]
    body = {"kind": type(error).__name__, "message": error.message, "hint": error.hint, "problems": problems}
    return {"error": body}


def find_error(document: Mapping[str, Any]) -> TrainchartError | None:
    """Return the error that a document holds instead of a result. Raises ValueError where it is not one of ours."""
    body = document.get("error")
    if body is None:
        return None
    with _Reading():
        kind = _ERRORS.get(str(body["kind"]), ToolError)
        problems = tuple(
            Problem(_text(each["message"]), where=_text(each["where"]), hint=_text(each["hint"]))
            for each in body["problems"]
        )
        return kind(_text(body["message"]), hint=_text(body["hint"]), problems=problems)


def dump_list(found: CheckpointList, whole: int | None) -> dict[str, Any]:
    """Return a list as a document; only the checkpoint of step `whole` keeps its variables, of which there are many."""
    return {
        "folder": found.folder,
        "origin": None if found.origin is None else dump_origin(found.origin),
        "problems": list(found.problems),
        "omitted": found.omitted,
        "checkpoints": [_dump_checkpoint(each, is_whole=each.step == whole) for each in found.checkpoints],
    }


def _dump_checkpoint(each: Checkpoint, *, is_whole: bool) -> dict[str, Any]:
    marker = each.marker
    variables = [[one.name, one.dtype, list(one.shape)] for one in marker.variables] if marker and is_whole else []
    return {
        "step": each.step,
        "problem": each.problem,
        "files": dict(each.files),
        "written_at": each.written_at,
        "metrics": dict(each.metrics),
        "marker": None
        if marker is None
        else {"ending": marker.ending, "files": dict(marker.files), "variables": variables},
    }


def parse_list(document: Mapping[str, Any]) -> CheckpointList:
    """Return the list that a document holds. Raises ValueError where it holds something else."""
    with _Reading():
        return CheckpointList(
            _text(document["folder"]),
            [_parse_checkpoint(each) for each in document["checkpoints"]],
            None if document["origin"] is None else parse_origin(_text(document["origin"])),
            [_text(each) for each in document["problems"]],
            _whole(document["omitted"]),
        )


def _parse_checkpoint(each: Mapping[str, Any]) -> Checkpoint:
    step, marker = _whole(each["step"]), each["marker"]
    return Checkpoint(
        step,
        _text(each["problem"]),
        None
        if marker is None
        else Marker(
            step=step,
            variables=[
                VariableShape(_text(name), _text(dtype), tuple(_whole(size) for size in shape))
                for name, dtype, shape in marker["variables"]
            ],
            files=_sizes(marker["files"]),
            ending=_text(marker["ending"]),
        ),
        _sizes(each["files"]),
        _time(each["written_at"]),
        parse_metrics(each["metrics"]),
    )


def dump_verified(found: Verified) -> dict[str, Any]:
    return {
        "folder": found.folder,
        "problems": list(found.problems.items()),
        "restart": found.restart,
        "has_markers": found.has_markers,
    }


def parse_verified(document: Mapping[str, Any]) -> Verified:
    """Return the verification that a document holds. Raises ValueError where it holds something else."""
    with _Reading():
        restart = document["restart"]
        return Verified(
            _text(document["folder"]),
            {_whole(step): _text(problem) for step, problem in document["problems"]},
            None if restart is None else _whole(restart),
            bool(document["has_markers"]),
        )


def dump_pruning(pruning: Pruning) -> dict[str, Any]:
    return {
        "folder": pruning.folder,
        "kept": list(pruning.kept),
        "removed": list(pruning.removed),
        "size": pruning.size,
    }


def parse_pruning(document: Mapping[str, Any]) -> Pruning:
    """Return the pruning that a document holds. Raises ValueError where it holds something else."""
    with _Reading():
        kept, removed = ([_whole(step) for step in document[key]] for key in ("kept", "removed"))
        return Pruning(_text(document["folder"]), kept, removed, _whole(document["size"]))


def _sizes(body: Mapping[str, Any]) -> dict[str, int]:
    return {_text(name): _whole(size) for name, size in body.items()}


def _whole(value: Any) -> int:
    number = int(value)
    if not 0 <= number < _NUMBERS_LIMIT:
        raise ValueError("a number of more than 63 bits")
    return number


def _time(value: Any) -> float:
    number = float(value)
    if not 0 <= number < _TIMES_LIMIT:
        raise ValueError("a time beyond all years")
    return number


def _text(value: Any) -> str:
    """Return a text that a file may be called by, too."""
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("expected a string")
    value.encode()
    return value


class _Reading:
    """Makes ValueErrors of what the document of another program raises when it is taken apart."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (KeyError, TypeError, AttributeError, OverflowError)):
            raise ValueError("it is not a trainchart document") from error
