"""Hyperparameters: one JSON object of numbers, read into a frozen dataclass and checked against it.

Pure: no TensorFlow here, so that a wrong setting is refused in milliseconds and not after a slow import.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any, TypeVar


class SettingsError(ValueError):
    """A setting is missing or wrong; the message is one line that names it."""


Wanted = TypeVar("Wanted")


def parse_hyperparameters(text: str, wanted: type[Wanted]) -> Wanted:
    """Return dataclass `wanted`, its defaults overridden by the JSON object in `text` (camelCase names).

    Fields of type int take whole numbers from 1 (seed from 0), fields of type float take numbers above 0.
    """
    known = {_camel_case(item.name): item for item in fields(wanted)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for name, value in parse_object(text, "TRAINCHART_HYPERPARAMETERS").items():
        if name not in known:
            raise SettingsError(f"hyperparameter {name!r} is not known; use one of {', '.join(known)}")
        check = _check_whole_number if known[name].type == "int" else _check_number
        values[known[name].name] = check(name, value)
    return wanted(**values)


def parse_object(text: str, variable: str) -> dict[str, Any]:
    """Return the JSON object in `text`, empty for no text; `variable` is where it came from."""
    try:
        value = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise SettingsError(f"{variable} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{variable}: expected a JSON object, got {value!r:.80}")
    return value


def _check_whole_number(name: str, value: Any) -> int:
    least = 0 if name == "seed" else 1
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise SettingsError(f"hyperparameter {name}: expected a whole number of at least {least}, got {value!r}")


def _check_number(name: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
        return float(value)
    raise SettingsError(f"hyperparameter {name}: expected a number above 0, got {value!r}")


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
