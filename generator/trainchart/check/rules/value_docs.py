"""Rules about the words around values: a comment above each, and a README that names them all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import mapping_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import (
    README_FILE,
    SCHEMA_FILE,
    VALUES_FILE,
    chart_values,
    is_free_value,
    read_source,
    unset_values,
    value_keys,
    values_schema,
)

_FREE_MAPS = ("Context", "Labels", "Annotations", "Selector", "Probe", "resources", "affinity")
_ROW = re.compile(r"^\| `([A-Za-z_][\w.*-]*)` \|", re.MULTILINE)


def check_comments(given: CheckInput) -> Iterator[Finding]:
    """Find keys of values.yaml without a comment above or behind them, here or in a section with the same keys."""
    lines = read_source(given, VALUES_FILE).splitlines()
    places = value_keys(given)
    commented = {place.path for place in places if _has_comment(lines, place.line)}
    explained = {(*path[:-2], path[-1]) for path in commented if len(path) > 1}
    entries = {path[:-2] for path in commented if len(path) > 1}
    for place in places:
        path = place.path
        if path in commented or _explains_itself(given, path[:-1]):
            continue
        # One of several alike: the first worker's `cpu` explains that of all, and with it what a role is.
        is_alike = (
            (*path[:-2], path[-1]) in explained
            or (place.is_section and path[:-1] in entries)
            or path[-1:] in commented  # a setting of all pods, here for some
        )
        if not is_alike:
            yield Finding(f"{'.'.join(path)} has no comment", path=VALUES_FILE, line=place.line)


def check_readme(given: CheckInput) -> Iterator[Finding]:
    """Compare the README with values.yaml: every value is named, and every value in its table exists."""
    readme = read_source(given, README_FILE)
    if not readme:
        yield Finding("there is no README.md", path=README_FILE)
        return
    places = [place for place in value_keys(given) if not place.is_section and not _holds_nothing(given, place.path)]
    rows = {row: _pattern(row) for row in _ROW.findall(readme)}
    for place in places:
        path = ".".join(place.path)
        parents = [".".join(place.path[:end]) for end in range(1, len(place.path))]
        documented = any(pattern.fullmatch(key) for pattern in rows.values() for key in (path, *parents))
        if not documented and (given.is_generated or not _is_named(readme, [path, *parents[1:]])):
            yield Finding(f"does not name the value {path}", path=README_FILE)
    known = [".".join(place.path) for place in value_keys(given)]
    for row, pattern in rows.items():
        is_unset = row.rpartition(".")[2] in unset_values(given)
        if "." in row and not is_unset and not any(pattern.fullmatch(path) for path in known):
            yield Finding(f"names the value {row}, which {VALUES_FILE} does not have", path=README_FILE)


def _holds_nothing(given: CheckInput, path: tuple[str, ...]) -> bool:
    """Tell whether the value is an empty map that the schema keeps empty."""
    value = mapping_at(chart_values(given), *path[:-1]).get(path[-1])
    described = mapping_at(values_schema(given), "properties", path[0])
    return len(path) == 1 and value == {} and described.get("additionalProperties") is False


def _explains_itself(given: CheckInput, path: tuple[str, ...]) -> bool:
    """Tell whether `path` is, or lies in, a map whose keys are Kubernetes' own or the user's."""
    return is_free_value(given, path) or any(part.endswith(_FREE_MAPS) for part in path)


def _has_comment(lines: list[str], line: int) -> bool:
    """Tell whether a comment stands right above `line` (from 1), or behind what is there."""
    above = lines[line - 2] if line > 1 else ""
    return above.lstrip().startswith("#") or bool(re.search(r"\s#", lines[line - 1]))


def _is_named(readme: str, names: list[str]) -> bool:
    return any(f"`{name}`" in readme or f"{name}=" in readme for name in names)


def _pattern(row: str) -> re.Pattern[str]:
    return re.compile(re.escape(row).replace(r"\*", "[^.]+"))


RULES = (
    Rule(
        "values-commented",
        "Users read values.yaml, and a key without a comment is hard to use.",
        check_comments,
        "https://helm.sh/docs/chart_best_practices/values/#document-valuesyaml",
        severity=Severity.warning,
        others=Severity.info,
        scope=Scope.charts,
        needs=(VALUES_FILE, SCHEMA_FILE),
    ),
    Rule(
        "readme-agrees",
        "A README that lags behind values.yaml sends users to values that do nothing.",
        check_readme,
        "https://helm.sh/docs/topics/charts/#chart-license-readme-and-notes",
        others=Severity.info,
        scope=Scope.charts,
        needs=(VALUES_FILE, SCHEMA_FILE),
    ),
)
