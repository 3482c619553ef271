"""What was asked of Helm: the schemas of a chart, and the values that the user gave, by path and as written. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from trainchart.helm.rendering import ValueOverrides
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, find_plain_scalars, parse_mapping

Path = tuple[str, ...]
Schema = Mapping[str, Any]

_SET_PART = re.compile(r"((?:\\.|\{[^{}]*\}|[^,])+)(?:,|$)", re.DOTALL)
SCHEMA_FILE = "values.schema.json"


@dataclass(frozen=True)
class Asked:
    """What was asked of Helm: the schemas of the charts, by name, and the values that the user gave."""

    schemas: Mapping[str, Schema] = field(default_factory=dict)
    chart: str = ""
    """The name of the chart itself; other names are those of subcharts."""
    overrides: ValueOverrides = field(default_factory=ValueOverrides)

    @functools.cached_property
    def given(self) -> Mapping[Path, Any]:
        """The leaves that the user gave, by path."""
        return _given_values(self.overrides)

    @functools.cached_property
    def spellings(self) -> Mapping[Path, str]:
        """How values files write numbers, truth values and nulls, by path."""
        scalars = (scalar for _, text in self.overrides.files for scalar in find_plain_scalars(text))
        return {scalar.path: scalar.spelling for scalar in scalars}


def read_schemas(files: Mapping[str, bytes], chart: str) -> dict[str, Schema]:
    """Return the schemas of values of a chart and of the charts below it, by name. Raises ValueError: not JSON."""
    paths = [PurePosixPath(path) for path in files if PurePosixPath(path).name == SCHEMA_FILE]
    schemas = {path.parent.name or chart: parse_json(files[str(path)]) for path in paths}
    return {name: schema for name, schema in schemas.items() if isinstance(schema, dict)}


def split_set(expression: str) -> list[str]:
    """Return each KEY=VALUE of a set option: commas divide them, except escaped ones and those of a list {a,b}."""
    return [match[1] for match in _SET_PART.finditer(expression)]


def _given_values(overrides: ValueOverrides) -> dict[Path, Any]:
    """Return the leaves that the user gave by path, later options winning; sets are read roughly, for messages only."""
    given: dict[Path, Any] = {}
    for _, text in overrides.files:
        try:
            given.update(_leaves(parse_mapping(text), ()))
        except YamlError:
            continue
    for expressions in (overrides.set_jsons, overrides.sets, overrides.set_strings):
        for part in (part for expression in expressions for part in split_set(expression)):
            key, sign, value = part.partition("=")
            if sign:
                words = re.split(r"(?<!\\)\.", re.sub(r"\[(\d+)\]", r".\1", key))
                given[tuple(re.sub(r"\\(.)", r"\1", word) for word in words)] = value
    return given


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _leaves(value, (*path, str(key)))
    else:
        yield path, node
