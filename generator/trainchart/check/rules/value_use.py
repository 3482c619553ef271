"""Rules about the use of values in templates: all are defined, all are used, and numbers print as numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.chart_file import CHART_FILE
from trainchart.check.finding import CheckInput, Finding, Probe, Severity
from trainchart.check.objects import called, mapping_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import (
    SCHEMA_FILE,
    VALUES_FILE,
    chart_file,
    chart_templates,
    chart_values,
    is_free_value,
    value_keys,
    values_schema,
    without_comments,
)
from trainchart.helm.rendering import Manifest
from trainchart.json_documents import resolve_reference

_REFERENCE = re.compile(r"\.Values((?:\.[A-Za-z_]\w*)+)?")
_PRINTED = re.compile(
    r"\{\{-?\s*(?:\$\w*|\.context)?\.Values((?:\.[A-Za-z_]\w*)+)\s*(?:\|\s*(?:quote|squote|trim)\s*)?-?\}\}"
)
_EXPONENT = re.compile(r"(?<![\w.+-])\d+(?:\.\d+)?e\+\d+\b")


@dataclass(frozen=True)
class Reference:
    """A place in a template that reads a value; an empty path means all of them."""

    path: tuple[str, ...]
    file: str
    line: int


def check_defined(given: CheckInput) -> Iterator[Finding]:
    """Find `.Values.x` in templates that neither values.yaml nor the schema has."""
    values, schema = chart_values(given), values_schema(given)
    subcharts = {
        str(name) for entry in _dependencies(given) for name in (entry.get("name"), entry.get("alias")) if name
    }
    for reference in _references(given):
        path = reference.path
        if not path or path[0] in subcharts or path[0] == "global":
            continue
        if not _is_defined(values, path) and not _in_schema(schema, path):
            yield Finding(f".Values.{'.'.join(path)} is not in {VALUES_FILE}", path=reference.file, line=reference.line)


def check_used(given: CheckInput) -> Iterator[Finding]:
    """Find values that no template reads."""
    references = list(_references(given))
    if not references or _dependencies(given):
        return  # A subchart's values are read by its templates, which are not looked at.
    paths = {reference.path for reference in references}
    if () in paths:
        return  # `toYaml .Values` or the like reads everything.
    names = {name for _, text in chart_templates(given) for name in re.findall(r"[.\"]([A-Za-z_]\w*)", text)}
    for place in value_keys(given):
        path = place.path
        if place.is_section or path[0] in ("global", "enabled"):
            continue
        if not _is_read(path, paths, names) and not is_free_value(given, path[:-1]) and not _is_empty(given, path):
            yield Finding(f"{'.'.join(path)} is used by no template", path=VALUES_FILE, line=place.line)


def check_numbers(given: CheckInput) -> Iterator[Finding]:
    """Find numbers that print as 2e+06: in what is rendered, and in what larger numbers would give.

    What is written so is meant so: numbers in the chart's own files, and texts of plain manifests.
    """
    written = {match[0] for text in _texts(given) for match in _EXPONENT.finditer(text)} if given.is_chart else set()
    reported: set[tuple[str, ...]] = set()
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            for where, text in _exponents(manifest.document, "", in_texts=given.is_chart):
                if text in written:
                    continue
                reported.add(_place(manifest, where))
                yield Finding(
                    f"{called(manifest)}: {where} is {text}",
                    path=manifest.source,
                    line=manifest.line,
                    hint="print the number with int64, or toJson",
                    values=label,
                )
    large = given.probes.get(Probe.large_numbers)
    for manifest in large.manifests if large else ():
        for where, text in _exponents(manifest.document, "", in_texts=True):
            if text in written or _place(manifest, where) in reported:
                continue
            yield Finding(
                f"{called(manifest)}: {where} would be {text} with a larger number in {VALUES_FILE}",
                path=manifest.source,
                line=manifest.line,
                severity=Severity.error if given.is_generated else Severity.warning,
                hint="print the number with int64, or toJson",
            )


def check_printed_numbers(given: CheckInput) -> Iterator[Finding]:
    """Find templates that print an integer of values.yaml as it is."""
    values = chart_values(given)
    for file, text in chart_templates(given):
        plain = without_comments(text)
        for match in _PRINTED.finditer(plain):
            path = tuple(match[1].strip(".").split("."))
            value = mapping_at(values, *path[:-1]).get(path[-1])
            if isinstance(value, int) and not isinstance(value, bool):
                yield Finding(
                    f".Values.{'.'.join(path)} is printed as a float, so a million becomes 1e+06",
                    path=file,
                    line=plain.count("\n", 0, match.start()) + 1,
                    hint=f"{{{{ int64 .Values.{'.'.join(path)} }}}}",
                )


def _references(given: CheckInput) -> Iterator[Reference]:
    for file, text in chart_templates(given):
        plain = without_comments(text)
        for match in _REFERENCE.finditer(plain):
            path = tuple((match[1] or "").strip(".").split(".")) if match[1] else ()
            yield Reference(path, file, plain.count("\n", 0, match.start()) + 1)


def _dependencies(given: CheckInput) -> list[Mapping[str, Any]]:
    found = chart_file(given).get("dependencies")
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []


def _is_defined(values: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(values, Mapping) or not values:
            # Below a free map, a null or a list nothing can be known.
            return isinstance(values, Mapping) or values is None
        if part not in values:
            return False
        values = values[part]
    return True


def _in_schema(schema: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    node: Any = schema
    for part in path:
        known = mapping_at(resolve_reference(node, schema), "properties")
        if part not in known:
            return False
        node = known[part]
    return bool(path)


def _is_empty(given: CheckInput, path: tuple[str, ...]) -> bool:
    found = mapping_at(chart_values(given), *path[:-1]).get(path[-1])
    return found == {} and is_free_value(given, path)


def _is_read(path: tuple[str, ...], paths: set[tuple[str, ...]], names: set[str]) -> bool:
    """Tell whether a template reads the value at `path`, or a section above it and then names its key."""
    if any(other[: len(path)] == path for other in paths):
        return True
    above = [other for other in paths if path[: len(other)] == other]
    # Its own key or that of the map it is in: entries of free maps are printed as they come.
    return any(len(path) == len(other) + 1 or not names.isdisjoint(path[len(other) :][-2:]) for other in above)


def _texts(given: CheckInput) -> Iterator[str]:
    yield from (content.decode(errors="replace") for content in given.files.values() if b"e+" in content)
    yield from given.added_values.values()


def _place(manifest: Manifest, where: str) -> tuple[str, ...]:
    return manifest.source, manifest.kind, manifest.name, where


def _exponents(document: Any, where: str, *, in_texts: bool) -> Iterator[tuple[str, str]]:
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _exponents(value, f"{where}.{key}".lstrip("."), in_texts=in_texts)
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from _exponents(value, f"{where}[{number}]", in_texts=in_texts)
    elif isinstance(document, float) and document.is_integer() and document >= 1e6:
        # Only a number in exponent form is read as a float with nothing behind the point.
        yield where, f"{document:.17g}" if document >= 1e17 else f"{document:g}"
    elif in_texts and isinstance(document, str) and "e+" in document:
        yield from ((where, match[0]) for match in _EXPONENT.finditer(document))


RULES = (
    Rule(
        "values-defined",
        "A misspelt .Values.x renders as nothing, without an error.",
        check_defined,
        "https://helm.sh/docs/chart_best_practices/values/",
        others=Severity.info,
        scope=Scope.charts,
        needs=(CHART_FILE, VALUES_FILE, SCHEMA_FILE),
    ),
    Rule(
        "values-used",
        "A value that nothing reads promises a setting that does not exist.",
        check_used,
        "https://helm.sh/docs/chart_best_practices/values/",
        others=Severity.info,
        scope=Scope.charts,
        needs=(CHART_FILE, VALUES_FILE, SCHEMA_FILE),
    ),
    Rule(
        "numbers-plain",
        "Helm reads numbers in values as floats, so a template prints 2000000 as 2e+06 unless it uses int64.",
        check_numbers,
        "https://github.com/helm/helm/issues/1707",
    ),
    Rule(
        "numbers-printed",
        "An integer that is small today prints as 1e+06 once it has grown.",
        check_printed_numbers,
        "https://github.com/helm/helm/issues/1707",
        others=Severity.info,
        scope=Scope.charts,
        needs=(VALUES_FILE,),
    ),
)
