"""Which hyperparameters a failed training needs another value of, or it fails the same way again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trainchart_runtime import contract
from trainchart_runtime.causes import BAD_ARGUMENTS

_NOT_FINITE = re.compile(r"\bnan\b|\binf(inity)?\b|not (a )?finite|diverge", re.IGNORECASE)
_RATES = re.compile(r"learningRate|lr|stepSize|rate|eta", re.IGNORECASE)
_REFUSED = re.compile(r"required|missing|must have a value|argument|option|flag", re.IGNORECASE)
_OPTION = re.compile(r"(?<![\w-])--([A-Za-z][\w.-]*)")
_UNSET = re.compile(rf"\b{contract.HYPERPARAMETER_PREFIX}([A-Z0-9_]+)")
_VALUE = "VALUE"


def suggest_settings(cause: str, error: str, hyperparameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return KEY=VALUE for each hyperparameter that a program which ended with `error` needs another value of.

    `hyperparameters` are those that had a value, where it is known.
    """
    if cause == BAD_ARGUMENTS.name:
        if not _REFUSED.search(error):
            return ()
        named = [_camel_case(option) for option in _OPTION.findall(error)]
        quoted = [name for name in hyperparameters if re.search(rf"\bhyperparameters?[. ]+'?{name}\b", error)]
        return _as_settings([*named, *quoted])
    if error.startswith("KeyError") and (unset := _UNSET.search(error)):
        return _as_settings([_camel_case(unset[1].lower())])
    if _NOT_FINITE.search(error):
        return _as_settings(name for name in hyperparameters if _RATES.fullmatch(name))
    return ()


def _camel_case(name: str) -> str:
    # Here, since it brings the models of the spec along, which nothing else of a report needs.
    from trainchart.scaffold.flag import to_camel_case

    return to_camel_case(name)


def _as_settings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"hyperparameters.{name}={_VALUE}" for name in names))
