"""YAML text to a plain tree in which every key knows its line: the ground for messages and for provenance.

A spec is read by the core schema of YAML 1.2, where `yes` is a text; charts are read as Helm reads them, by YAML 1.1.
Whether the tree makes a valid spec is decided in plan/resolve.py, after the layers of defaults have been merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainchart.errors import Problem, SpecError
from trainchart.yaml_limits import FastLoader, TooManyNodes, refuse_deep_nesting, refuse_many_nodes

Path = tuple[str | int, ...]
NODE_LIMIT = 50_000
"""No spec is as large as this; a few aliases of aliases are much larger."""
SPEC_HINT = "a spec starts with apiVersion: trainchart/v1 and kind: Model"


_IMPOSSIBLE = re.compile("[\0\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
"""NUL, which no variable, argument or path can hold; DEL, C1, and what is no character; Helm writes NEL, U+2028 and
U+2029 as they are, and Kubernetes reads line breaks.
yaml.v3 reads other control characters in the escapes of JSON."""
LOST_TEXT = "<no value>"
"""What Helm removes from all that it renders, in quotes too: Go's templates write it for a missing value."""
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no YAML text may hold, and the line breaks of YAML 1.1 that are characters of a line in YAML 1.2."""


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


class _Loader(FastLoader):  # type: ignore[misc]
    """Tells what a word without quotes is: null, a truth value, a number or a text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_TAG = "tag:yaml.org,2002:"
_DIGITS = "[0-9][0-9_]*"
_FLOAT = rf"[-+]?(?:{_DIGITS}\.[0-9_]*(?:[eE][-+]?[0-9]+)?|{_DIGITS}[eE][-+]?[0-9]+|\._*{_DIGITS}(?:[eE][-+][0-9]+)?)"
_INTEGER = f"[-+]?(?:0b_*[01][01_]*|0o_*[0-7][0-7_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|{_DIGITS})"
_BOOLEANS = {word: word[0] in "tT" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
for _kind, _words, _first in (
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "|".join(_BOOLEANS), list("tTfF")),
    ("float", rf"{_FLOAT}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.0123456789")),
    ("int", _INTEGER, list("-+0123456789")),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"^(?:{_words})$"), _first)
_KEY_LIMIT = 1000
"""Characters of a key: readers of YAML take no more before the colon."""
_NUMBER_LIMIT = 400
"""Characters of a number: the largest float has 309 digits."""
_BASES = {"0b": 2, "0o": 8, "0x": 16}
_TEXTS = tuple(_TAG + kind for kind in ("str", "timestamp", "merge"))
"""The core schema has no dates, so the author meant text; << merges as a key alone."""


def compose(text: str) -> yaml.Node | None:
    """Return the nodes of one YAML document, with their places in `text`; None of an empty one.

    An alias is the very node that it stands for, which may hold the alias.

    Raises:
        yaml.YAMLError: not one YAML document, nested too deep, or too large (TooManyNodes).
    """
    refuse_many_nodes((text,), NODE_LIMIT)
    refuse_deep_nesting(text)
    return yaml.compose(text, Loader=_Loader)


def parse_document(text: str, *, file: str, layer: str, hint: str = SPEC_HINT) -> Document:
    """Parse one YAML mapping; `hint` says how such a file starts.

    Raises:
        SpecError: not YAML, a duplicate key, several documents, an alias loop, or not a mapping.
    """
    _require_readable(text, file)
    reader = _Reader(layer, file)
    try:
        root = compose(text)
        if isinstance(root, yaml.MappingNode):
            return Document(reader.read(root, ()), reader.origins)
    except TooManyNodes as error:
        raise _too_large(file) from error
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text, file) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _not_yaml(" ".join(str(error).split()), file) from error
    found = {yaml.SequenceNode: "a list", yaml.ScalarNode: "a string"}.get(type(root), "nothing")
    problem = Problem(f"expected a mapping of keys to values, found {found}", f"{file}:1:1")
    raise SpecError("not a mapping of keys to values", problems=(problem,), hint=hint)


def _explain(error: yaml.MarkedYAMLError, text: str, file: str) -> SpecError:
    """Return what libyaml found, with its place, and what to do about it."""
    mark, begin = error.problem_mark or error.context_mark, error.context_mark
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    what = " ".join((error.problem or error.context or "cannot be parsed").split())
    if "escape code" in what:  # JSON writes a character beyond U+FFFF as two halves
        return _not_yaml("this escape is not a character", where, "write the character itself, or \\U0001F600")
    if "cannot start any token" in what and mark:
        character = text[mark.index : mark.index + 1]
        if character == "\t":
            return _not_yaml("a tab indents this line", where, "indent with spaces")
        return _not_yaml(f"a value cannot begin with {character}", where, "quote it")
    if error.problem and error.context and mark and begin and begin.line < mark.line:
        what += f" ({error.context}, which begins in line {begin.line + 1})"
    return _not_yaml(what, where, "check indentation and quotes")


def _not_yaml(what: str, where: str, hint: str = "") -> SpecError:
    return SpecError("not valid YAML", problems=(Problem(what, where, hint),))


def _too_large(file: str) -> SpecError:
    what = f"more than {NODE_LIMIT} entries, aliases included"
    return SpecError("the spec is too large", problems=(Problem(what, file),))


def _require_readable(text: str, file: str) -> None:
    """Refuse characters that a file of YAML may not hold, or that its readers understand differently."""
    found = _UNREADABLE.search(text, text.startswith("\ufeff"))
    if found is not None:
        where = f"{file}:{text.count(chr(10), 0, found.start()) + 1}"
        if found[0] in "\x85\u2028\u2029":
            what = f"U+{ord(found[0]):04X} is a line break for some readers of YAML, and not for others"
            raise _not_yaml(what, where, "leave it out")
        raise _not_yaml(f"the control character U+{ord(found[0]):04X} is not allowed", where, "leave it out")


@dataclass
class _Reader:
    """Makes plain Python data of nodes, and notes the origin of everything."""

    layer: str
    file: str
    origins: dict[Path, Origin] = field(init=False)
    _open: set[int] = field(default_factory=set)
    """The collections that are being read, by identity."""
    _merged_nodes: int = 0

    def __post_init__(self) -> None:
        self.origins = {(): Origin(self.layer, self.file, 1)}

    def read(self, node: yaml.Node, path: Path) -> Any:
        """Return `node`, which stands at `path`, as plain data. Raises SpecError."""
        if len(self.origins) > NODE_LIMIT:
            raise _too_large(self.file)
        if isinstance(node, yaml.ScalarNode):
            value = self._scalar(node)
            self._require_characters(value, node)
            return value
        if id(node) in self._open:
            raise _not_yaml("an alias within the value that it stands for", str(self.origins[path]), "write it out")
        self._open.add(id(node))
        plain: Any = {}
        if isinstance(node, yaml.MappingNode):
            plain = self._mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            plain = self._sequence(node, path)
        self._open.remove(id(node))
        return plain

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        self._require_tag(node, "map")
        plain: dict[str, Any] = {}
        for name, place, value in self._entries(node):
            below = (*path, name)
            self._note(below, place, value)
            plain[name] = self.read(value, below)
        return plain

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[Any]:
        self._require_tag(node, "seq")
        plain: list[Any] = []
        for index, value in enumerate(node.value):
            self._note((*path, index), value, value)
            plain.append(self.read(value, (*path, index)))
        return plain

    def _note(self, path: Path, place: yaml.Node, value: yaml.Node) -> None:
        is_spelled = isinstance(value, yaml.ScalarNode) and value.tag not in _TEXTS
        line, column = place.start_mark.line + 1, place.start_mark.column + 1
        self.origins[path] = Origin(self.layer, self.file, line, column, value.value if is_spelled else "")

    def _entries(self, node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield key, place and value; what is merged in (<<) stands where the mapping does, and its own keys win."""
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                for name, found in self._merged(value):
                    merged.setdefault(name, found)
                continue
            name = self._key(key)
            if name in own:
                raise self._refuse_duplicate(node, name)
            own[name] = (key, value)
        for name, value in merged.items():
            if name not in own:
                yield name, node, value
        for name, (key, value) in own.items():
            yield name, key, value

    def _merged(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
        """Yield what `<<` brings in of one mapping, or of a list of them, of which the first wins."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            self._merged_nodes += 1 + (len(each.value) if isinstance(each, yaml.MappingNode) else 0)
            if self._merged_nodes > NODE_LIMIT:
                raise _too_large(self.file)
            if not isinstance(each, yaml.MappingNode) or id(each) in self._open:
                raise _not_yaml("<< takes a mapping, or a list of them", self._where(node), "name an anchor of one")
            self._open.add(id(each))
            yield from ((name, value) for name, _, value in self._entries(each))
            self._open.remove(id(each))

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _not_yaml("a key is a list or a mapping", self._where(node), "write keys as NAME: value")
        if self._scalar(node) is None:
            raise _not_yaml("a key is empty", self._where(node))
        self._require_characters(node.value, node)
        if node.value == "<<":
            hint = "choose another key"
            raise _not_yaml("a quoted key <<, which a chart cannot distinguish from a merge", self._where(node), hint)
        if len(node.value) > _KEY_LIMIT:
            raise _not_yaml(f"a key of more than {_KEY_LIMIT} characters", self._where(node))
        return str(node.value)

    def _refuse_duplicate(self, node: yaml.MappingNode, name: str) -> SpecError:
        places = [key for key, _ in node.value if key.value == name]
        lines = list(dict.fromkeys(str(key.start_mark.line + 1) for key in places))
        where = f"lines {', '.join(lines[:-1])} and {lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
        often = "twice" if len(places) == 2 else f"{len(places)} times"
        return _not_yaml(f"{name} is there {often}: {where}", self._where(places[1]))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        """Return the text, number, truth value or None that a scalar stands for; a tag may say so."""
        kind, text = str(node.tag).removeprefix(_TAG), str(node.value)
        if node.tag in _TEXTS:
            return text
        try:
            if kind == "null":
                return {"~": None, "null": None, "Null": None, "NULL": None, "": None}[text]
            if kind == "bool":
                return _BOOLEANS[text]
            if len(text) > _NUMBER_LIMIT:
                what = f"a number of {len(text)} characters"
                raise _not_yaml(what, self._where(node), "quote it if it is a string")
            digits = text.replace("_", "").lower()
            if kind == "int":
                return int(digits, _BASES.get(digits.lstrip("+-")[:2], 10))
            if kind == "float":
                return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
        except (ValueError, KeyError):  # only a tag makes such a text a number
            raise _not_yaml(f"{text[:60]!r} is not of type {kind}", self._where(node)) from None
        raise self._refuse_tag(node)

    def _require_tag(self, node: yaml.Node, kind: str) -> None:
        if node.tag != _TAG + kind:
            raise self._refuse_tag(node)

    def _refuse_tag(self, node: yaml.Node) -> SpecError:
        tag = str(node.tag)
        written = f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
        return _not_yaml(f"the tag {written} has no meaning in a spec", self._where(node), "remove the tag")

    def _require_characters(self, value: Any, node: yaml.Node) -> None:
        """Refuse characters that YAML allows as escapes, and Helm cannot write; and a text that it removes."""
        if isinstance(value, str) and _IMPOSSIBLE.search(value):
            what = "a NUL, which no program can read" if "\0" in value else "a control character that Helm cannot write"
            raise _not_yaml(f"{value!r} holds {what}", self._where(node), "remove it, or use base64")
        if isinstance(value, str) and LOST_TEXT in value:
            what = f"{value[:60]!r} contains {LOST_TEXT}, which Helm removes from every text"
            hint = "write it in another way, such as <no-value>"
            raise SpecError("a text that Helm removes", problems=(Problem(what, self._where(node), hint),))

    def _where(self, node: yaml.Node) -> str:
        return f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
