"""Which types the files of a local run must have: one that came with the files of others may hold anything. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trainchart_runtime.progress import parse_number

_NUMBER = (int, float)
_OF_RECORD: Mapping[str, tuple[type, ...]] = {
    "command": (str,),
    "startedAt": _NUMBER,
    "values": (dict,),
    "hyperparameters": (dict,),
    "code": (dict,),
    "python": (str,),
    "chartIdentity": (str,),
    "host": (str,),
}
_OF_CODE: Mapping[str, tuple[type, ...]] = {"folder": (str,), "commit": (str,), "isDirty": (bool,), "sha256": (str,)}
_OF_RESULT: Mapping[str, tuple[type, ...]] = {
    "step": (int,),
    "examplesPerSecond": _NUMBER,
    "metrics": (dict,),
    "pods": (list,),
    "failure": (dict,),
}
_OF_FAILURE: Mapping[str, tuple[type, ...]] = {"at": _NUMBER, "exit_code": (int,), "last_lines": (list,)}


def require_types(record: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Raise TypeError where a run's record or its result has another type than a run writes; null is always allowed."""
    _require(record, _OF_RECORD)
    _require(record.get("code") or {}, _OF_CODE)
    _require(result, _OF_RESULT)
    failure = result.get("failure") or {}
    _require(failure, _OF_FAILURE)
    _require_all(failure.get("last_lines") or (), str)
    for metrics in (result.get("metrics") or {}).values():
        _require_all((metrics or {}).values(), *_NUMBER)
    for pod in result.get("pods") or ():
        _require_all(pod.get("nanMetrics") or (), str)


def _require(found: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    for name, expected in types.items():
        if found.get(name) is not None:
            _require_all([found[name]], *expected)


def _require_all(values: Iterable[Any], *expected: type) -> None:
    for value in values:
        # A truth value is a number to Python.
        if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
            raise TypeError(f"{type(value).__name__} where {expected[0].__name__} is expected")
        if expected == _NUMBER and parse_number(value) is None:
            raise TypeError("a number that is not finite")
