"""Rules about Chart.yaml: what Helm needs of it, and what people look for in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.archive.chart_file import CHART_FILE, REQUIREMENTS_FILE, find_overriding_keys
from trainchart.archive.read import is_safe_name
from trainchart.archive.subcharts import require_unambiguous
from trainchart.chart_version import is_chart_version
from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import VALUES_FILE, read_source
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, find_keys, parse_mapping

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME_LIMIT = 63
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "apiVersion": str,
    "name": str,
    "version": str,
    "kubeVersion": str,
    "description": str,
    "type": str,
    "keywords": list,
    "home": str,
    "sources": list,
    "dependencies": list,
    "maintainers": list,
    "icon": str,
    "appVersion": str,
    "deprecated": bool,
    "annotations": dict,
    "condition": str,
    "tags": str,
}
"""Every field there is: pkg/chart/v2/metadata.go."""
_ENTRY_FIELDS = {
    "maintainers": {"name", "email", "url"},
    "dependencies": {"name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"},
}
_ADVISED = {
    "description": "one sentence on what it installs",
    "home": "the project's page",
    "sources": "where the source is",
    "maintainers": "who to ask",
    "icon": "an icon for catalogues",
    "kubeVersion": "the versions it works with",
    "appVersion": "the version of what it installs",
}


def check_fields(given: CheckInput) -> Iterator[Finding]:
    """Check names and types of all fields, the chart's name and its version."""
    text = read_source(given, CHART_FILE)
    try:
        chart = parse_mapping(text)
    except YamlError as error:
        yield Finding(f"cannot be read: {error}", path=CHART_FILE, line=error.line)
        return
    lines = {place.path[0]: place.line for place in find_keys(text) if len(place.path) == 1}
    for field, message, hint in _field_problems(chart):
        yield Finding(message, path=CHART_FILE, line=lines.get(field, 1), hint=hint)
    try:
        requirements = parse_mapping(read_source(given, REQUIREMENTS_FILE))
    except YamlError as error:
        yield Finding(f"cannot be read: {error}", path=REQUIREMENTS_FILE, line=error.line)
    else:
        yield from _find_overrides(given, requirements)
        yield from _find_unclear_subcharts(given)
    for path in given.files:
        if not is_safe_name(path):
            yield Finding(f"the file name {path!a} is a different path to Helm, or not a path", path="")


def _find_unclear_subcharts(given: CheckInput) -> Iterator[Finding]:
    try:
        # Another rule reads the values of the chart itself.
        require_unambiguous({path: content for path, content in given.files.items() if path != VALUES_FILE})
    except ToolError as error:
        yield Finding(error.message, path="charts", hint=error.hint)


def _find_overrides(given: CheckInput, requirements: Mapping[str, Any]) -> Iterator[Finding]:
    lines = {place.path[0]: place.line for place in find_keys(read_source(given, REQUIREMENTS_FILE))}
    for key in find_overriding_keys(requirements):
        yield Finding(
            f"Helm prefers its key {key} to the one of {CHART_FILE}",
            path=REQUIREMENTS_FILE,
            line=lines.get(key, 1),
            hint=f"keep nothing but dependencies in {REQUIREMENTS_FILE}",
        )


def check_about(given: CheckInput) -> Iterator[Finding]:
    """Name the fields that Helm does without and people miss."""
    try:
        chart = parse_mapping(read_source(given, CHART_FILE))
    except YamlError:
        return
    for field, what in _ADVISED.items():
        # A library has nothing to run, so no version of it and no cluster.
        if not chart.get(field) and not (chart.get("type") == "library" and field.endswith("Version")):
            yield Finding(f"has no {field}", path=CHART_FILE, severity=Severity.info, hint=f"{field}: {what}")


def _field_problems(chart: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (field, message, hint)."""
    for field, value in chart.items():
        kind = _TYPES.get(field)
        if kind is None:
            yield field, f"Helm does not know the field {field!r}", "put your own fields into annotations"
        elif value is not None and not isinstance(value, kind):
            yield (
                field,
                f"{field}: {value!r} has the wrong type",
                f'quote it: {field}: "{value}"' if kind is str else "",
            )
    for section, known in _ENTRY_FIELDS.items():
        entries = chart.get(section)
        for entry in entries if isinstance(entries, list) else ():
            unknown = sorted(map(str, entry.keys() - known)) if isinstance(entry, dict) else [str(entry)]
            if unknown:
                yield section, f"{section}: Helm does not know {', '.join(unknown)}", ""
    yield from _identity_problems(chart)


def _identity_problems(chart: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    name, version = chart.get("name"), chart.get("version")
    if not isinstance(name, str) or len(name) > _NAME_LIMIT or not _NAME.fullmatch(name):
        yield "name", f"{name!r} is not a chart name", f"at most {_NAME_LIMIT} lower-case letters, digits and dashes"
    if not isinstance(version, str) or not is_chart_version(version.removeprefix("v")):
        yield "version", f"{version!r} is not a SemVer 2 version", 'for example: "1.4.0"'
    if chart.get("apiVersion") not in ("v1", "v2"):
        yield "apiVersion", f"apiVersion {chart.get('apiVersion')!r} is neither v2 nor v1", "apiVersion: v2"
    if chart.get("type") not in (None, "", "application", "library"):
        yield "type", f"type {chart.get('type')!r} is neither application nor library", ""
    annotations = chart.get("annotations")
    for key, value in annotations.items() if isinstance(annotations, dict) else ():
        if not isinstance(value, str):
            yield "annotations", f"annotation {key}: {value!r} is not a string", "quote it"


RULES = (
    Rule(
        "chart-fields",
        "Helm silently drops unknown fields of Chart.yaml, and a wrong type fails only at install.",
        check_fields,
        "https://helm.sh/docs/topics/charts/#the-chartyaml-file",
        scope=Scope.charts,
    ),
    Rule(
        "chart-about",
        "Users who find the chart in a catalogue need to know what it is, and whom to ask.",
        check_about,
        "https://artifacthub.io/docs/topics/repositories/helm-charts/",
        severity=Severity.info,
        others=Severity.info,
        scope=Scope.charts,
    ),
)
