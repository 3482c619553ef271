"""Numbers and words without quotes that readers of YAML take for something else than what is written. Pure."""

from __future__ import annotations

import re

from trainchart.spec.section import LARGEST_INTEGER

_PLAIN_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?")
"""Every reader takes these for the same number: no leading zeros, underscores, or bases other than ten."""


def name_misreading(value: float, spelling: str) -> tuple[str, str]:
    """Return what is wrong with reading `spelling` as the number `value`, and what to write beside quoting it.

    Both are empty where every reader takes it for what is written.
    """
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "exceeds the integers that Helm represents exactly, ±(2^53 - 1)", ""
    if value == 0 and re.search("[1-9]", re.split("[eE]", spelling)[0]):
        return "is read as the number 0", ""
    if not _PLAIN_NUMBER.fullmatch(spelling):
        return f"is read as the number {print_value(value)}", f", or write {print_value(value)}"
    return "", ""


def print_value(value: float | bool | None) -> str:
    """Return the text that a chart makes of a value where Kubernetes takes only texts."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return str(int(value)) if value == int(value) else repr(value)
