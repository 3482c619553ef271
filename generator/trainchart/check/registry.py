"""Every check rule, in the order of docs/checks.md. Adding one means adding it to RULES of its module."""

from __future__ import annotations

import difflib
import functools

from trainchart.check.rule import Rule
from trainchart.check.rules import (
    archive,
    availability,
    chart_file,
    fields,
    files,
    helm,
    hooks,
    hosts,
    identity,
    kubernetes,
    label_formats,
    labels,
    names,
    network,
    pod_security,
    pods,
    policy,
    quantities,
    repeatable,
    style,
    training,
    upgrades,
    value_docs,
    value_schema,
    value_use,
    values,
    variables,
    versions,
    waivers,
)

_MODULES = (
    helm,
    chart_file,
    files,
    archive,
    style,
    values,
    value_schema,
    value_use,
    value_docs,
    repeatable,
    kubernetes,
    fields,
    identity,
    versions,
    names,
    upgrades,
    labels,
    label_formats,
    pod_security,
    pods,
    variables,
    quantities,
    network,
    availability,
    hooks,
    hosts,
    training,
    policy,
    waivers,
)
RULES: tuple[Rule, ...] = tuple(rule for module in _MODULES for rule in module.RULES)


def find_rules(ids: tuple[str, ...]) -> tuple[Rule, ...]:
    """Return the rules of `ids`. Raises KeyError with a message that suggests the nearest id."""
    known = {rule.id: rule for rule in RULES}
    for wanted in ids:
        if wanted not in known:
            raise KeyError(describe_unknown_rule(wanted))
    return tuple(known[wanted] for wanted in ids)


@functools.lru_cache(maxsize=1024)
def describe_unknown_rule(wanted: str) -> str:
    """Say that there is no rule `wanted`, and which ids are near to it."""
    near = difflib.get_close_matches(wanted, (rule.id for rule in RULES), n=3)
    return f"there is no rule {wanted!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")
