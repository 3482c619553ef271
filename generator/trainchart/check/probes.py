"""What else a chart is rendered with, to see what it does: large numbers, other replicas, too many pods, an upgrade."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainchart.archive.chart_file import CHART_FILE
from trainchart.check.finding import CheckInput
from trainchart.check.objects import mapping_at
from trainchart.check.sources import (
    chart_file,
    chart_templates,
    chart_values,
    every_template,
    values_schema,
)
from trainchart.json_documents import resolve_reference
from trainchart.kubernetes_yaml import dump_mapping

MORE_REPLICAS = 12
_MANY = 4000
_LARGE = 2_000_000
_COUNTING = re.compile(r"\b(?:until|untilStep|seq|repeat)\b(?![^}]{0,1000}replicas)")
"""Replicas are kept small, so templates may count to them."""
_KEPT = re.compile(r"(?i).*(?:replica|count|port|percent|size|parallel|instances|repeat|indent).*")
"""Numbers that templates count to, or that have a small range by nature."""
_NEXT_VERSION = "998.0.0"
_REVISION = re.compile(r"(?<![\w.])\$?(?:\w*\.)*Release\.Revision\b")


def large_numbers(given: CheckInput) -> str:
    """Return values in which every integer is above a million; empty where a template might count to one."""
    if any(_COUNTING.search(text) for _, text in chart_templates(given)):
        return ""
    raised = _raise_integers(chart_values(given))
    return dump_mapping(raised) if raised else ""


def more_replicas(given: CheckInput) -> str:
    """Return values with twelve pods of every role that may have so many."""
    wanted = {role: MORE_REPLICAS for role, most in _most_replicas(given).items() if most >= MORE_REPLICAS}
    return _dump_replicas(wanted)


def many_pods(given: CheckInput) -> str:
    """Return values with as many pods as the schema allows; empty for charts whose roles are single pods."""
    wanted = {role: most for role, most in _most_replicas(given).items() if most > 1}
    return _dump_replicas(wanted)


def next_version(given: CheckInput) -> dict[str, bytes]:
    """Return the files in which the chart's next version differs: its versions, and the revision of the release.

    Helm renders offline as revision 1 always, so the number takes the place of the name in templates.
    """
    chart = dict(chart_file(given)) | {"version": _NEXT_VERSION}
    if "appVersion" in chart:
        chart["appVersion"] = _NEXT_VERSION
    files = {CHART_FILE: dump_mapping(chart).encode()}
    for path, text in every_template(given):
        if _REVISION.search(text):
            files[path] = _REVISION.sub("2", text).encode()
    return files


def _raise_integers(values: Mapping[str, Any]) -> dict[str, Any]:
    raised: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            below = _raise_integers(value)
            if below:
                raised[str(key)] = below
        elif isinstance(value, int) and not isinstance(value, bool) and value > 0 and not _KEPT.fullmatch(str(key)):
            raised[str(key)] = value + _LARGE
    return raised


def _most_replicas(given: CheckInput) -> dict[str, int]:
    schema = values_schema(given)
    known = mapping_at(schema, "properties", "roles", "properties")
    limits: dict[str, Any] = {}
    for role in mapping_at(chart_values(given), "roles"):
        described = resolve_reference(known.get(role), schema)
        limits[str(role)] = mapping_at(described, "properties", "replicas").get("maximum", _MANY)
    return {role: min(int(most), _MANY) for role, most in limits.items() if isinstance(most, (int, float))}


def _dump_replicas(wanted: Mapping[str, int]) -> str:
    return dump_mapping({"roles": {role: {"replicas": number} for role, number in wanted.items()}}) if wanted else ""
