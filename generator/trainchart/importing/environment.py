"""Environment variables of a container, as `env` of the spec: no secret is copied, and no reference dangles. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from trainchart.importing.ledger import Ledger, Place
from trainchart.secret_names import holds_login, is_secret_name
from trainchart.spec.section import RESERVED_ENV_PATTERN
from trainchart.variables import find_references
from trainchart_runtime import contract

_LAUNCHER = (*contract.PROGRAM_VARIABLES,)
"""What the launcher sets in every pod, after whatever the chart sets."""


def secret_name(model: str) -> str:
    """Return the name of the Secret that holds what the input said in plain text."""
    return f"{model}-secrets"


def refer_to_secret(model: str, variable: str) -> dict[str, Any]:
    """Return the value of an environment variable that comes from the Secret of a model."""
    return {"valueFrom": {"secretKeyRef": {"name": secret_name(model), "key": variable}}}


def read_env(entries: Any, place: Place, model: str, ledger: Ledger) -> dict[str, Any]:
    """Return `env` of a role from a container's list of variables."""
    env: dict[str, Any] = {}
    for index, entry in enumerate(ledger.entries(entries, place)):
        where = (*place, index)
        variable = ledger.mapping(entry, where)
        name = variable.get("name")
        if not isinstance(name, str):
            ledger.leave(where, "it has no name")
        elif name in _LAUNCHER or re.fullmatch(RESERVED_ENV_PATTERN, name):
            ledger.carry(where, f"the launcher, which sets {name} in every pod")
        elif "valueFrom" in variable:
            env[name] = {"valueFrom": variable["valueFrom"]}
            ledger.carry(where, f"env.{name}")
        else:
            env[name] = _read_value(name, variable.get("value"), where, model, ledger)
    return _escape_unknown(env)


def _read_value(name: str, value: Any, place: Place, model: str, ledger: Ledger) -> Any:
    if value is not None and not isinstance(value, (str, int, float)):
        ledger.leave(place, "its value is not a string")
        return ""
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if text and (is_secret_name(name) or holds_login(text)) and "$(" not in text:
        ledger.leave(
            place, f"the value of {name} looks like a secret, which a chart must not contain", tell_secret(model, name)
        )
        return refer_to_secret(model, name)
    ledger.carry(place, f"env.{name}")
    return text


def tell_secret(model: str, variable: str) -> str:
    """Return what to do so that pods get a variable from the Secret that the spec names."""
    command = f"kubectl create secret generic {secret_name(model)} --from-literal={variable}=…"
    return f"the spec takes it from a Secret: {command}"


def _escape_unknown(env: Mapping[str, Any]) -> dict[str, Any]:
    """Keep as text what Kubernetes would leave as text: references to variables that no container has."""
    return {
        name: escape_references(value, env.keys() - {name}) if isinstance(value, str) else value
        for name, value in env.items()
    }


def escape_references(text: str, known: Collection[str]) -> str:
    """Return `text` with `$$(NAME)` for each `$(NAME)` that is not known."""
    for reference in {str(found) for found in find_references(text)}:
        if reference not in known and not reference.startswith("KUBERNETES_"):
            text = re.sub(rf"(?<!\$)\$\({re.escape(reference)}\)", f"$$({reference})", text)
    return text
