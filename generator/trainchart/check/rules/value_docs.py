"""Rules about the words around values: a comment above each, and a README that names them all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import mapping_at
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import (
    README_FILE,
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
    """Find keys of values.yaml that no comment stands above; it begins with the key's name or with `--`."""
    lines = read_source(given, VALUES_FILE).splitlines()
    for place in value_keys(given):
        if _explains_itself(given, place.path[:-1]):
            continue
        first = _comment_start(lines, place.line)
        name = place.path[-1]
        if not first:
            yield Finding(f"{'.'.join(place.path)} has no comment above it", path=VALUES_FILE, line=place.line)
        elif not re.match(rf"#+ *(?:@param|--|{re.escape(name)}\b)", first) and given.is_generated:
            yield Finding(
                f"the comment above {'.'.join(place.path)} does not begin with {name}",
                path=VALUES_FILE,
                line=place.line,
            )


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


def _comment_start(lines: list[str], line: int) -> str:
    """Return the first line of the comment right above `line` (from 1), or the one behind the key; else nothing."""
    number = line - 2
    while number >= 0 and lines[number].lstrip().startswith("#"):
        number -= 1
    if number < line - 2:
        return lines[number + 1].strip()
    return ""


def _is_named(readme: str, names: list[str]) -> bool:
    return any(f"`{name}`" in readme or f"{name}=" in readme for name in names)


def _pattern(row: str) -> re.Pattern[str]:
    return re.compile(re.escape(row).replace(r"\*", "[^.]+"))


RULES = (
    Rule(
        "values-commented",
        "values.yaml is what users read; a key without a word is a riddle.",
        check_comments,
        "https://helm.sh/docs/chart_best_practices/values/#document-valuesyaml",
        severity=Severity.warning,
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "readme-agrees",
        "A README that lags behind values.yaml sends users to values that do nothing.",
        check_readme,
        "https://helm.sh/docs/topics/charts/#chart-license-readme-and-notes",
        others=Severity.info,
        scope=Scope.charts,
    ),
)
