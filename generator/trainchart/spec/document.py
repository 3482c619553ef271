"""YAML text to a plain tree in which every key knows its line: the ground for messages and for provenance.

Owner of ruamel.yaml for reading. Whether the tree makes a valid spec is decided in plan/resolve.py, after the
layers of defaults have been merged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from trainchart.errors import Problem, SpecError

Path = tuple[str | int, ...]
NODE_LIMIT = 50_000
"""No spec is as large as this; a few aliases of aliases are much larger."""


_IMPOSSIBLE = re.compile("[\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
"""DEL, C1, and what is no character; Helm writes NEL as it is, and Kubernetes reads a line break.
yaml.v3 reads other control characters in the escapes of JSON."""


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: the layer, and the line (1-based) in its file."""

    layer: str
    file: str
    line: int
    column: int = 1
    spelling: str = ""
    """How a number, truth value or null is written; empty for all else."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Document:
    """One parsed YAML mapping and the origin of each of its nodes, by path."""

    tree: Mapping[str, Any]
    origins: Mapping[Path, Origin]

    def with_value(self, key: str, value: Any) -> Document:
        """Return the document with another value at the top level."""
        return Document({**self.tree, key: value}, {(key,): self.origins[()], **self.origins})


@dataclass(frozen=True)
class _Spelled:
    """A plain scalar that YAML takes for something else than text, and how it is written."""

    value: Any
    spelling: str

    def __str__(self) -> str:
        return self.spelling

    __repr__ = __str__


class _Constructor(RoundTripConstructor):
    """Keeps the spelling of what is not text: 0712345 and 712345 are one number, but not one text."""

    def construct_spelled(self, node: Any) -> _Spelled:
        read = {"int": self.construct_yaml_int, "float": self.construct_yaml_float, "bool": self.construct_yaml_bool}
        kind = str(node.tag).rpartition(":")[2]
        try:
            return _Spelled(read[kind](node) if kind in read else None, node.value)
        except (ValueError, KeyError) as error:  # only a tag makes such a text a number
            raise ConstructorError(None, None, f"{node.value!r} is not of type {kind}", node.start_mark) from error

    def construct_text(self, node: Any) -> str:
        return str(node.value)

    def check_mapping_key(self, node: Any, key_node: Any, mapping: Any, key: Any, value: Any) -> bool:
        if key in mapping:
            lines = [str(each.start_mark.line + 1) for each, _ in node.value if each.value == key_node.value]
            lines = list(dict.fromkeys(lines))
            where = f"lines {', '.join(lines[:-1])} and {lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
            often = "twice" if len(lines) <= 2 else f"{len(lines)} times"
            raise ConstructorError(None, None, f"{key} is there {often}: {where}", key_node.start_mark)
        return True


for _kind in ("int", "float", "bool", "null"):
    _Constructor.add_constructor(f"tag:yaml.org,2002:{_kind}", _Constructor.construct_spelled)
# The core schema of YAML 1.2 has no dates, so the author meant text.
_Constructor.add_constructor("tag:yaml.org,2002:timestamp", _Constructor.construct_text)


def parse_document(text: str, *, file: str, layer: str) -> Document:
    """Parse one YAML mapping.

    Raises:
        SpecError: not YAML, a duplicate key, several documents, an alias loop, or not a mapping.
    """
    yaml = YAML(typ="rt")
    yaml.Constructor = _Constructor
    try:
        loaded = yaml.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        what = " ".join((error.problem or error.context or "cannot be parsed").split())
        raise SpecError("not valid YAML", problems=(Problem(what, where, _hint(error)),)) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the control character U+{ord(text[error.position]):04X} is not allowed"
        raise SpecError("not valid YAML", problems=(Problem(what, f"{file}:{line}", "leave it out"),)) from error
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
        raise SpecError("not valid YAML", problems=(Problem(" ".join(str(error).split()), file),)) from error
    if not isinstance(loaded, CommentedMap):
        found = "nothing" if loaded is None else type(loaded).__name__.removeprefix("Commented").lower()
        raise SpecError(
            "not a model spec",
            problems=(Problem(f"expected a mapping of keys to values, found {found}", f"{file}:1:1"),),
            hint="a spec starts with apiVersion: trainchart/v1 and kind: Model",
        )
    origins: dict[Path, Origin] = {(): Origin(layer, file, 1)}
    tree = _plain(loaded, (), origins, layer, file)
    _require_characters(tree, (), origins)
    return Document(tree, origins)


def _hint(error: MarkedYAMLError) -> str:
    return "" if isinstance(error, ConstructorError) else "check indentation and quotes"


def _require_characters(node: Any, path: Path, origins: Mapping[Path, Origin]) -> None:
    """Refuse characters that YAML allows as escapes, and no file can hold or Helm cannot write: it drops the block."""
    if isinstance(node, dict):
        for key, value in node.items():
            _require_characters(key, (*path, key), origins)
            _require_characters(value, (*path, key), origins)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            _require_characters(value, (*path, index), origins)
    elif isinstance(node, str) and (found := _IMPOSSIBLE.search(node)):
        what, hint = "a control character that Helm cannot write", "leave it out, or write base64"
        if "\ud800" <= found[0] <= "\udfff":
            what, hint = "half a character", "write the character itself, or \\U0001F600"
        problem = Problem(f"{node!r} holds {what}", str(origins[path]), hint)
        raise SpecError("not valid YAML", problems=(problem,))


def _plain(node: Any, path: Path, origins: dict[Path, Origin], layer: str, file: str) -> Any:
    """Return `node` as plain Python data, and note the origin of everything below it."""
    if len(origins) > NODE_LIMIT:
        raise SpecError(
            "the spec is too large", problems=(Problem(f"more than {NODE_LIMIT} entries, aliases included", file),)
        )
    if isinstance(node, CommentedMap):
        plain_map: dict[str, Any] = {}
        for key, value in node.items():
            if isinstance(key, _Spelled) and key.value is None:
                raise SpecError("not valid YAML", problems=(Problem("a key is empty", str(origins[path])),))
            if not isinstance(key, (str, _Spelled, TaggedScalar)):
                problem = Problem("a key is a list or a mapping", str(origins[path]), "write keys as NAME: value")
                raise SpecError("not valid YAML", problems=(problem,))
            below = (*path, str(key))
            origins[below] = Origin(layer, file, *_position(node, key), _spelling(value))
            plain_map[str(key)] = _plain(value, below, origins, layer, file)
        return plain_map
    if isinstance(node, CommentedSeq):
        plain_list: list[Any] = []
        for index, value in enumerate(node):
            below = (*path, index)
            origins[below] = Origin(layer, file, *_position(node, index), _spelling(value))
            plain_list.append(_plain(value, below, origins, layer, file))
        return plain_list
    if not isinstance(node, (str, _Spelled, TaggedScalar)) and node is not None:
        problem = Problem("a value is neither a text, number, list nor mapping", str(origins[path]), "take the tag out")
        raise SpecError("not valid YAML", problems=(problem,))
    return _scalar(node)


def _position(node: CommentedMap | CommentedSeq, key: Any) -> tuple[int, int]:
    """Return line and column (1-based) of an entry; merged-in keys (<<) have none of their own."""
    data = node.lc.data
    if data and key in data:
        return data[key][0] + 1, data[key][1] + 1
    return (node.lc.line or 0) + 1, (node.lc.col or 0) + 1


def _spelling(node: Any) -> str:
    return node.spelling if isinstance(node, _Spelled) else ""


def _scalar(node: Any) -> Any:
    """Return a ruamel scalar as the plain type that it stands for."""
    value = node.value if isinstance(node, _Spelled) else node
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float):
        if isinstance(value, plain):
            return plain(value)
    return str(value)
