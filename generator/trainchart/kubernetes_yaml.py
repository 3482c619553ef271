"""YAML as Helm and Kubernetes read it: the one owner of PyYAML.

Helm reads YAML with sigs.k8s.io/yaml, which differs from PyYAML in what an unquoted word means: there are
no dates and no base-60 numbers, and 1e3 is a number; keys are always texts, and no anchor holds itself, as in
JSON. The loader here follows Helm. Positions for messages about a model spec are not made here; the spec
parser has its own round-trip reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from trainchart.yaml_limits import NODE_LIMIT, TooManyNodes, refuse_many_nodes
from trainchart.yaml_loader import MERGE_TAG, RESOLVED, Loader


class YamlError(ValueError):
    """The text is not YAML, or not of the shape asked for; `line` counts from 1, 0 where unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class YamlTooLarge(YamlError):
    """The text holds more than is read; Helm may read it."""


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


@dataclass(frozen=True)
class PlainScalar:
    """A number, truth value or null: where it stands, how it is written, and what Helm reads."""

    path: tuple[str, ...]
    line: int
    spelling: str
    value: float | bool | None


@dataclass(frozen=True)
class PlacedObject:
    """A Kubernetes object, or what stands in its place, and the line where it starts."""

    value: Any
    line: int


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


_LINE_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks of YAML 1.1 that Go and Python fold and indent in different ways: only their escapes are safe."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = '"' if _LINE_BREAKS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

for _tag, _pattern, _first in RESOLVED:  # the dumper must quote every text that the loader would not read as one
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))

_EXPANDED_LIMIT = 1_000_000
"""Nodes of a document once every alias stands for what it repeats: no author means more."""


def require_few_nodes(texts: Iterable[str], *, limit: int = NODE_LIMIT) -> None:
    """Raise YamlTooLarge for texts that hold more than `limit` nodes together."""
    try:
        refuse_many_nodes(tuple(texts), limit)
    except TooManyNodes as error:
        raise YamlTooLarge(str(error)) from error


def parse_documents(text: str, *, node_limit: int = NODE_LIMIT, drop_empty: bool = True) -> tuple[Any, ...]:
    """Return every document of `text`, unless told otherwise those only that are not empty. Raises YamlError."""
    documents = (document for document, _ in _load(text, node_limit))
    return tuple(document for document in documents if document is not None or not drop_empty)


def parse_objects(text: str) -> tuple[PlacedObject, ...]:
    """Return every Kubernetes object of `text`, the items of a List each for itself. Raises YamlError."""
    found: list[PlacedObject] = []
    for document, node in _load(text):
        if document is not None:
            found += [PlacedObject(value, _line(below)) for value, below in _flatten(document, node)]
    return tuple(found)


def parse_objects_with_lines(
    text: str, *, node_limit: int = NODE_LIMIT
) -> tuple[tuple[PlacedObject, dict[tuple[str | int, ...], int]], ...]:
    """Return what parse_objects does, each with the line of every key and list entry in it. Raises YamlError."""
    found = []
    for document, node in _load(text, node_limit):
        if document is not None:
            found += [
                (PlacedObject(value, _line(below)), _list_lines(below)) for value, below in _flatten(document, node)
            ]
    return tuple(found)


def _list_lines(root: yaml.Node) -> dict[tuple[str | int, ...], int]:
    lines: dict[tuple[str | int, ...], int] = {(): _line(root)}
    pending: list[tuple[tuple[str | int, ...], yaml.Node]] = [((), root)]
    while pending and len(lines) < NODE_LIMIT:  # aliases repeat nodes
        path, node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            below = [((*path, str(key.value)), _line(key), value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            below = [((*path, number), _line(value), value) for number, value in enumerate(node.value)]
        else:
            continue
        for place, line, value in below:
            lines[place] = line
            pending.append((place, value))
    return lines


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _load(text: str, node_limit: int = NODE_LIMIT) -> Iterator[tuple[Any, yaml.Node]]:
    try:
        loader = Loader(text, node_limit)
        while loader.check_node():
            node = loader.get_node()
            if "*" in text:
                _require_finite(node)
            yield loader.construct_document(node), node
    except yaml.YAMLError as error:
        raise _converted(error, text) from error
    except YamlError:
        raise
    except (ValueError, RecursionError) as error:
        raise YamlError(f"cannot be read as YAML: {error}") from error


def _require_finite(root: yaml.Node) -> None:
    """Refuse an anchor that holds itself, and aliases of aliases that add up to more than can be looked at."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()

    def size(node: yaml.Node) -> int:
        if id(node) in open_:
            raise YamlError("an anchor contains itself", node.start_mark.line + 1)
        if id(node) not in sizes:
            open_.add(id(node))
            sizes[id(node)] = 1 + sum(map(size, _children(node)))
            open_.remove(id(node))
        return sizes[id(node)]

    if size(root) > _EXPANDED_LIMIT:
        raise YamlError("its aliases repeat too much", root.start_mark.line + 1)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (key, value)


def _flatten(document: Any, node: yaml.Node) -> Iterator[tuple[Any, yaml.Node]]:
    """Yield the object and its node, or what is in its `items`, as kubectl and Helm take it, whatever its kind is.

    The items of a typed List that say no type have the one of the List.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    items = [] if kind == "List" and items is None else items
    if not isinstance(kind, str) or not isinstance(items, list):
        yield document, node
        return
    implied = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    nodes: list[yaml.Node] = next((value.value for key, value in node.value if key.value == "items"), [])
    for item, below in zip(items, nodes if len(nodes) == len(items) else [node] * len(items), strict=True):
        is_typed = isinstance(item, dict) and (item.get("kind") or item.get("apiVersion"))
        yield from _flatten(item if is_typed or not isinstance(item, dict) else {**item, **implied}, below)


def parse_mapping(text: str, *, node_limit: int = NODE_LIMIT) -> dict[str, Any]:
    """Return the single mapping that `text` holds; empty text is an empty mapping. Raises YamlError."""
    documents = parse_documents(text, node_limit=node_limit, drop_empty=False)
    if any(document is not None for document in documents[1:]):  # Helm reads the first one
        raise YamlError(f"expected one YAML document, found {len(documents)}")
    if not documents or documents[0] is None:
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
        roots = list(yaml.compose_all(text, Loader=Loader))
    except (yaml.YAMLError, RecursionError):
        return ()
    return tuple(duplicate for root in roots if root is not None for duplicate in _duplicates(root))


def find_merge_key(text: str) -> int:
    """Return the line of the first key that merges another mapping; 0 without one, and where it is not YAML."""
    try:
        roots = list(yaml.compose_all(text, Loader=Loader))
    except (yaml.YAMLError, RecursionError):
        return 0
    mappings = (node for root in roots if root is not None for node in _mappings(root))
    keys = (key for node in mappings for key, _ in node.value)
    return min((key.start_mark.line + 1 for key in keys if key.tag == MERGE_TAG), default=0)


def find_unprintable(text: str) -> int:
    """Return the line of the first character that YAML forbids, such as most control characters; 0 without one."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def find_keys(text: str) -> tuple[KeyPlace, ...]:
    """Return every key of the mapping that `text` holds, in order, lists not entered; nothing where it is no YAML."""
    try:
        root = yaml.compose(text, Loader=Loader)
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


def find_plain_scalars(text: str) -> tuple[PlainScalar, ...]:
    """Return the numbers, truth values and nulls of one document, in order; nothing where it is no YAML."""
    try:
        loader = Loader(text)
        root = loader.get_single_node()
        if root is not None and "*" in text:
            _require_finite(root)
        return tuple(_plain_scalars(loader, root, ()))
    except (yaml.YAMLError, YamlError, ValueError, RecursionError):
        return ()


def _plain_scalars(loader: Loader, node: yaml.Node | None, path: tuple[str, ...]) -> Iterator[PlainScalar]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _plain_scalars(loader, value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _plain_scalars(loader, value, (*path, str(index)))
    elif isinstance(node, yaml.ScalarNode):
        value = loader.construct_object(node)
        if not isinstance(value, str):
            yield PlainScalar(path, _line(node), str(node.value), value)


def _mappings(root: yaml.Node) -> Iterator[yaml.MappingNode]:
    pending = [root]
    visited: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
        pending.extend(_children(node))


def _duplicates(root: yaml.Node) -> Iterator[DuplicateKey]:
    for node in _mappings(root):
        keys: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in keys and name != "<<":
                yield DuplicateKey(name, key.start_mark.line + 1)
            keys.add(name)


def _converted(error: yaml.YAMLError, text: str) -> YamlError:
    if isinstance(error, TooManyNodes):
        return YamlTooLarge(str(error))
    unprintable = find_unprintable(text)
    if isinstance(error, yaml.reader.ReaderError) and unprintable:
        return YamlError("it holds a character that YAML forbids", unprintable)
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return YamlError(str(problem), mark.line + 1 if mark is not None else 0)


def _kind(value: object) -> str:
    return {list: "a list", str: "a string", bool: "a boolean"}.get(type(value), "a number")
