"""The files of a chart, parsed once and shared by the rules: Chart.yaml, values.yaml, its schema, README, templates."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.archive.chart_file import CHART_FILE, REQUIREMENTS_FILE
from trainchart.check.finding import CheckInput
from trainchart.check.objects import mapping_at
from trainchart.json_documents import parse_json, resolve_reference
from trainchart.kubernetes_yaml import KeyPlace, YamlError, find_keys, parse_mapping

KUBERNETES_DEFINITIONS = "#/$defs/io.k8s."
"""Definitions taken over from Kubernetes: strict already, and not the author's."""
VALUES_FILE = "values.yaml"
SCHEMA_FILE = "values.schema.json"
README_FILE = "README.md"
NOTES_FILE = "templates/NOTES.txt"
_UNSET = re.compile(r"^ *# *([A-Za-z_][\w-]*):(?= |$)", re.MULTILINE)
_TEMPLATES = (".yaml", ".yml", ".tpl", ".txt", ".json")
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?(?:\*/\s*-?\}\}|\Z)", re.DOTALL)


def read_source(given: CheckInput, path: str) -> str:
    """Return the text of a file, empty where there is none."""
    return _decode(given.files.get(path, b""))


def yaml_sources(given: CheckInput, *, without: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the YAML files outside of the folders `without`."""
    for path, content in given.files.items():
        # The only file of plain manifests has no path: it is what the user named.
        if (path.endswith((".yaml", ".yml")) or not path) and not path.startswith(without):
            yield path, _decode(content)


def chart_file(given: CheckInput) -> Mapping[str, Any]:
    """Return Chart.yaml with the dependencies of requirements.yaml, empty where it cannot be read."""
    requirements = _mapping(given.files.get(REQUIREMENTS_FILE, b""))
    return {
        **_mapping(given.files.get(CHART_FILE, b"")),
        **{key: value for key, value in requirements.items() if key == "dependencies"},
    }


def chart_values(given: CheckInput) -> Mapping[str, Any]:
    """Return values.yaml, empty where it cannot be read."""
    return _mapping(given.files.get(VALUES_FILE, b""))


def value_keys(given: CheckInput) -> tuple[KeyPlace, ...]:
    """Return every key of values.yaml with its line."""
    return _keys(given.files.get(VALUES_FILE, b""))


def unset_values(given: CheckInput) -> frozenset[str]:
    """Return the names that values.yaml shows in a comment only, as `# seed: unset`: values without a default."""
    return frozenset(_UNSET.findall(read_source(given, VALUES_FILE)))


def values_schema(given: CheckInput) -> Mapping[str, Any]:
    """Return values.schema.json, empty where it cannot be read."""
    return _schema(given.files.get(SCHEMA_FILE, b""))


def is_readable(given: CheckInput, file: str) -> bool:
    """Tell whether a YAML or JSON file of the chart can be parsed to a mapping. A missing file is empty."""
    return _is_readable(given.files.get(file, b""), is_json=file.endswith(".json"))


def is_free_value(given: CheckInput, path: tuple[str, ...]) -> bool:
    """Tell whether the schema leaves what is at `path` to Kubernetes' definitions or to the user.

    An object that may hold nothing at all counts too: there is nothing to say about it.
    """
    root = values_schema(given)
    node: Mapping[str, Any] = root
    for part in path:
        if part not in mapping_at(node, "properties") and mapping_at(node, "additionalProperties"):
            return True
        below = mapping_at(node, "properties", part)
        node = mapping_at(resolve_reference(below, root, until=KUBERNETES_DEFINITIONS))
        if "$ref" in node:
            return True
    is_empty = not node.get("properties") and node.get("additionalProperties") is False
    return is_empty or bool(mapping_at(node, "additionalProperties"))


def every_template(given: CheckInput) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the templates of the chart and of its subcharts in folders."""
    for path, content in given.files.items():
        if "templates/" in path and path.endswith(_TEMPLATES):
            yield path, content.decode(errors="replace")


def chart_templates(given: CheckInput) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the chart's own templates, those of subcharts left out."""
    return ((path, text) for path, text in every_template(given) if path.startswith("templates/"))


def without_comments(text: str) -> str:
    """Return the text of a template without its comments, on the same lines as before."""
    return _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


# The bytes of a file are asked for often and remember their hash, a text decoded from them would not.
@functools.lru_cache(maxsize=64)
def _mapping(content: bytes) -> Mapping[str, Any]:
    try:
        return parse_mapping(_decode(content))
    except YamlError:
        return {}


@functools.lru_cache(maxsize=64)
def _is_readable(content: bytes, *, is_json: bool) -> bool:
    try:
        found = parse_json(content or b"{}") if is_json else parse_mapping(_decode(content))
    except (ValueError, YamlError):
        return False
    return isinstance(found, dict)


@functools.lru_cache(maxsize=16)
def _keys(content: bytes) -> tuple[KeyPlace, ...]:
    return find_keys(_decode(content))


@functools.lru_cache(maxsize=16)
def _schema(content: bytes) -> Mapping[str, Any]:
    try:
        found = parse_json(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _decode(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="replace")
