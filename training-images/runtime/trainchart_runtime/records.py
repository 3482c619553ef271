"""NamedTuples as JSON objects and back: run_id is "runId", sequences are lists, what is missing has its default.

One reader for all, driven by the annotations, so that a record has one definition and everything else is refused
with the name of what is wrong.
"""

from __future__ import annotations

import collections.abc
import functools
import itertools
import typing
from typing import Any, Dict, Mapping, Type, TypeVar, Union

from trainchart_runtime.progress import parse_number

Record = TypeVar("Record")


_LARGEST = 2**63 - 1
"""What floats and other programs can still read."""
_LIST_LIMIT = 200
_MAPPING_LIMIT = 5000
"""Entries that are read: more than any program of ours writes, so that a forged record takes no time to read."""


class RecordError(ValueError):
    """A document is not the record that it should be; the message names the first thing that is wrong."""


def dump_record(record: Any) -> Dict[str, Any]:
    """Return a NamedTuple as what json.dumps can write."""
    return {_key(field): _dump(value) for field, value in record._asdict().items()}


def parse_record(kind: Type[Record], document: Any, where: str) -> Record:
    """Read a NamedTuple from parsed JSON; keys that it does not know are left out. Raises RecordError."""
    if not isinstance(document, dict):
        raise RecordError(f"{where} is {document!r:.80}, not a JSON object")
    hints = _read_hints(kind)  # type: ignore[arg-type]  # a class is hashable
    defaults: Mapping[str, Any] = kind._field_defaults  # type: ignore[attr-defined]
    values = {}
    for field, hint in hints.items():
        key = _key(field)
        if key in document:
            values[field] = _parse(hint, document[key], f"{key!r} of {where}")
        elif field not in defaults:
            raise RecordError(f"{where} has no {key!r}")
    return kind(**values)


@functools.lru_cache(maxsize=None)
def _read_hints(kind: Any) -> Mapping[str, Any]:
    # Python evaluates the annotations each time, which takes most of the time of a list of many runs.
    return typing.get_type_hints(kind)


@functools.lru_cache(maxsize=None)
def _key(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(word.capitalize() for word in others)


def _dump(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return dump_record(value)
    if isinstance(value, collections.abc.Mapping):
        return {key: _dump(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dump(each) for each in value]
    return value


def _parse(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Union:
        return None if value is None else _parse(arguments[0], value, where)
    if origin is collections.abc.Sequence and isinstance(value, list):
        return tuple(_parse(arguments[0], each, f"an entry of {where}") for each in value[-_LIST_LIMIT:])
    if origin is collections.abc.Mapping and isinstance(value, dict):
        items = itertools.islice(value.items(), _MAPPING_LIMIT)
        return {key: _parse(arguments[1], each, f"{key!r:.80} in {where}") for key, each in items}
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return parse_record(hint, value, where)
    if hint is float and parse_number(value) is not None:
        return float(value)
    # bool is an int in Python.
    if hint is int and isinstance(value, int) and abs(value) > _LARGEST:
        raise RecordError(f"{where} is not a number of up to 64 bits")
    if hint in (str, int) and isinstance(value, hint) and not isinstance(value, bool):
        return value
    raise RecordError(f"{where} is {value!r:.80}, not {_name(hint, origin)}")


def _name(hint: Any, origin: Any) -> str:
    names: Mapping[Any, str] = {float: "a number", int: "a whole number", str: "a string"}
    return names.get(hint) or ("a list" if origin is collections.abc.Sequence else "a JSON object")
