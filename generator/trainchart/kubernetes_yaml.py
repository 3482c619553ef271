"""YAML as Helm and Kubernetes read it: the one owner of PyYAML.

Helm reads YAML with sigs.k8s.io/yaml, which differs from PyYAML in what an unquoted word means: there are
no dates and no base-60 numbers, and 1e3 is a number. The loader here follows Helm. Positions for messages
about a model spec are not made here; the spec parser has its own round-trip reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

# libyaml is about ten times faster; the pure Python loader is the fall-back where a wheel lacks it.
_FastLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """The text is not YAML, or not of the shape asked for; `line` counts from 1, 0 where unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True)
class DuplicateKey:
    """A mapping key that occurs twice in one mapping; Kubernetes keeps only the last."""

    key: str
    line: int


@dataclass(frozen=True)
class KeyPlace:
    """A mapping key: the keys that lead to it, itself last, its line, and whether a mapping with keys is below it."""

    path: tuple[str, ...]
    line: int
    is_section: bool


class _Loader(_FastLoader):  # type: ignore[misc]
    """Resolves plain scalars as go-yaml version 2 does."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


class _Dumper(yaml.SafeDumper):
    """Writes lists indented below their key, as Helm charts are written, and no aliases.

    Not libyaml's dumper: that one does not ask how to indent.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


_WORDS = "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_INTEGER = r"[-+]?(?:0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0|[1-9][0-9_]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

for _tag, _pattern, _first in (
    ("bool", _WORDS, "yYnNtTfFoO"),
    ("int", _INTEGER, "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    for _class in (_Loader, _Dumper):  # the dumper must quote every text that the loader would not read as one
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))

_BOOLEANS = {word: word[0] in "yYtT" or word.lower() == "on" for word in _WORDS.split("|")}
# As a value, << is a text like any other; only as a key it merges.
_Loader.add_constructor("tag:yaml.org,2002:merge", lambda loader, node: loader.construct_scalar(node))
_Loader.add_constructor("tag:yaml.org,2002:bool", lambda loader, node: _BOOLEANS[node.value])


def parse_documents(text: str) -> tuple[Any, ...]:
    """Return every document of `text` that is not empty. Raises YamlError."""
    try:
        return tuple(document for document in yaml.load_all(text, Loader=_Loader) if document is not None)
    except yaml.YAMLError as error:
        raise _converted(error) from error
    except (ValueError, RecursionError) as error:
        raise YamlError(f"cannot be read as YAML: {error}") from error


def parse_mapping(text: str) -> dict[str, Any]:
    """Return the single mapping that `text` holds; empty text is an empty mapping. Raises YamlError."""
    documents = parse_documents(text)
    if len(documents) > 1:
        raise YamlError(f"expected one YAML document, found {len(documents)}")
    if not documents:
        return {}
    if not isinstance(documents[0], dict):
        raise YamlError(f"expected a mapping at the top, found {_kind(documents[0])}", 1)
    return documents[0]


def dump_mapping(value: Mapping[str, Any]) -> str:
    """Return `value` as block YAML, keys in the order given, ending in a newline."""
    return str(
        yaml.dump(
            dict(value),
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=100,
            default_flow_style=False,
        )
    )


def find_duplicate_keys(text: str) -> tuple[DuplicateKey, ...]:
    """Return the keys that occur twice in one mapping anywhere in `text`; nothing where it is not YAML."""
    try:
        roots = list(yaml.compose_all(text, Loader=_Loader))
    except (yaml.YAMLError, RecursionError):
        return ()
    return tuple(duplicate for root in roots if root is not None for duplicate in _duplicates(root))


def find_keys(text: str) -> tuple[KeyPlace, ...]:
    """Return every key of the mapping that `text` holds, in order, lists not entered; nothing where it is no YAML."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError):
        return ()
    return tuple(_keys(root, (), set()))


def _keys(node: yaml.Node | None, above: tuple[str, ...], visited: set[int]) -> Iterator[KeyPlace]:
    # What an alias repeats is entered once: it may be part of itself.
    if not isinstance(node, yaml.MappingNode) or id(node) in visited:
        return
    visited.add(id(node))
    for key, value in node.value:
        path = (*above, str(key.value))
        is_section = isinstance(value, yaml.MappingNode) and bool(value.value)
        yield KeyPlace(path, key.start_mark.line + 1, is_section)
        yield from _keys(value, path, visited)


def _duplicates(root: yaml.Node) -> Iterator[DuplicateKey]:
    pending = [root]
    visited: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                pending.append(value)
                name = str(key.value)
                if name in keys and name != "<<":
                    yield DuplicateKey(name, key.start_mark.line + 1)
                keys.add(name)


def _converted(error: yaml.YAMLError) -> YamlError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return YamlError(str(problem), mark.line + 1 if mark is not None else 0)


def _kind(value: object) -> str:
    return {list: "a list", str: "a text", bool: "a boolean"}.get(type(value), "a number")
