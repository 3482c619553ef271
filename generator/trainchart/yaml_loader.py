"""How Go reads YAML: the PyYAML loader with Go's scalars and keys, which refuses what readers understand differently.

Source: gopkg.in/yaml.v2 (resolve.go) below sigs.k8s.io/yaml, which Helm and Kubernetes use.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Any

import yaml

from trainchart.yaml_limits import NODE_LIMIT, FastLoader, refuse_deep_nesting, refuse_many_nodes

MERGE_TAG = "tag:yaml.org,2002:merge"
_WORDS = "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
# Nothing is given back (*+, ++): a word of 100,000 underscores would take minutes.
_INTEGER = r"[-+]?_*+(?:0_*+[bB][01_]++|0_*+[xX][0-9a-fA-F_]++|0(?:_*+[oO])?[0-7_]++|0|[1-9][0-9_]*+)"
_INTEGER += r"|0_*+b_*+[-+][01_]++"
_DIGITS = "[0-9][0-9_]*+"
_SPACED = "[0-9]++(?:_[0-9]++)*+"
_FLOAT = rf"(?:[-+]_*+\._*+{_DIGITS}|(?:[-+]_*+)?{_DIGITS}(?:\.[0-9_]*+)?)(?:[eE]_*+[-+]?_*+{_DIGITS})?"
# Before a point without a sign, Go does not take out underscores first.
_FLOAT += rf"|\.{_SPACED}(?:[eE][-+]?{_SPACED})?"
_FLOAT += r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

_TYPED = {
    "bool": re.compile(f"^(?:{_WORDS})$"),
    "int": re.compile(f"^(?:{_INTEGER})$"),
    "float": re.compile(f"^(?:{_FLOAT})$"),
    "null": re.compile("^(?:~|null|Null|NULL|)$"),
}
RESOLVED = (
    ("bool", _TYPED["bool"], "yYnNtTfFoO"),
    ("int", _TYPED["int"], "-+0123456789"),
    ("float", _TYPED["float"], "-+0123456789."),
    ("null", _TYPED["null"], ["~", "n", "N", ""]),
    ("merge", re.compile("^<<$"), "<"),
)
"""What an unquoted word means: the name of its tag, the words, and the characters that these begin with."""


class Loader(FastLoader):  # type: ignore[misc]
    """Resolves plain scalars as go-yaml version 2 does, and makes texts of keys as the way to JSON does."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, text: str, node_limit: int = NODE_LIMIT) -> None:
        refuse_many_nodes((text,), node_limit)
        refuse_deep_nesting(text)
        _require_no_marks(text)
        _require_plain_tokens(text)
        _require_plain_separators(text)
        super().__init__(text)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace a merge by what it stands for: of a list, the first mapping wins, and own keys win over all.

        PyYAML's versions differ in what they make of merges in merges.
        """
        merges = [value for key, value in node.value if key.tag == MERGE_TAG]
        if not merges:
            return
        merged: dict[tuple[str, str], tuple[yaml.Node, yaml.Node]] = {}
        for part in reversed(merges[0].value if isinstance(merges[0], yaml.SequenceNode) else merges[:1]):
            if not isinstance(part, yaml.MappingNode):
                what = f"expected a mapping to merge, found a {part.id}"
                raise yaml.constructor.ConstructorError(None, None, what, part.start_mark)
            self.flatten_mapping(part)
            merged |= {(key.tag, self._name_key(key, part)): (key, value) for key, value in part.value}
        self._require_merge_first(node, {name for _, name in merged})
        node.value = [*merged.values(), *(pair for pair in node.value if pair[0].tag != MERGE_TAG)]

    def _require_merge_first(self, node: yaml.MappingNode, merged: set[str]) -> None:
        """Refuse merges that readers understand in different ways.

        For PyYAML a mapping's own keys win wherever they stand, for Helm whatever comes last.
        """
        own: set[str] = set()
        has_merge = False
        for key, _ in node.value:
            if key.tag != MERGE_TAG:
                own |= set() if has_merge else {self._name_key(key, node)}
            elif key.value != "<<":
                raise _ambiguous("a merge that is not written <<", key.start_mark)
            elif has_merge:
                raise _ambiguous("a second << in one mapping", key.start_mark)
            else:
                has_merge = True
                for name in sorted(own & merged):
                    raise _ambiguous(f"<< sets {name} again after it was set", key.start_mark)

    def _name_key(self, key: yaml.Node, node: yaml.MappingNode) -> str:
        return _key_text(self.construct_object(key, deep=True), node)

    def construct_scalar(self, node: yaml.Node) -> Any:
        # PyYAML makes of a mapping the value of its key !!value, where it has one; Go knows no such key.
        if isinstance(node, yaml.MappingNode):
            what = "expected a scalar, found a mapping"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
        return super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        # Not by a dictionary of the keys as they are: for Python 1, 1.0 and true are one key.
        if not isinstance(node, yaml.MappingNode):
            return dict(super().construct_mapping(node, deep=deep))
        self.flatten_mapping(node)
        found: dict[str, Any] = {}
        keys: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            name = key if type(key) is str else _key_text(key, node)
            # Different numbers may have one name, too, as of floats Helm keeps 32 bits.
            if name in found and (type(keys[name]) is not type(key) or keys[name] != key):
                raise _ambiguous(f"two keys that both become {name!r}", key_node.start_mark)
            keys[name] = key
            found[name] = self.construct_object(value_node, deep=deep)
        return found


for _tag, _pattern, _first in RESOLVED:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))
_BOOLEANS = {word: word[0] in "yYtT" or word.lower() == "on" for word in _WORDS.split("|")}
# As a value, << is a text like any other; only as a key it merges.
Loader.add_constructor(MERGE_TAG, lambda loader, node: loader.construct_scalar(node))


def _ambiguous(what: str, place: yaml.Mark) -> yaml.YAMLError:
    problem = f"{what}: YAML readers understand that differently"
    return yaml.constructor.ConstructorError(None, None, problem, place)


def _construct_typed(loader: Loader, node: yaml.Node) -> bool | float | int | str | None:
    """Return the value of a null, bool, int or float, which the author may have tagged so. Raises yaml.YAMLError."""
    kind = node.tag.rpartition(":")[2]
    text = str(loader.construct_scalar(node))
    if not _TYPED[kind].fullmatch(text):
        raise _ambiguous(f"{text!r} is not a value of !!{kind}", node.start_mark)
    if kind == "null":
        return None
    return _BOOLEANS[text] if kind == "bool" else _number(text)


def _number(text: str) -> float | int | str:
    """Return a number as Go reads it: an integer beyond 64 bits is a float, and what no float can hold a text."""
    plain = text.replace("_", "").lower()
    try:
        if _TYPED["int"].fullmatch(text):
            whole = int(plain.removeprefix("0b"), _base(plain.lstrip("+-")))
            return whole if -(2**63) <= whole < 2**64 else _finite(float(plain))
        if plain.endswith(("inf", "nan")):
            return float(plain.replace(".", ""))
        return _finite(float(plain))
    except ValueError:
        return text


def _base(digits: str) -> int:
    if digits[:1] != "0" or digits == "0":
        return 10
    return {"b": 2, "x": 16}.get(digits[1], 8)


def _finite(value: float) -> float:
    if math.isinf(value):
        raise ValueError("it overflows")
    return value


for _tag in _TYPED:
    Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _construct_typed)


def _refuse_tag(loader: Loader, node: yaml.Node) -> None:
    del loader
    raise _ambiguous("!!" + node.tag.rpartition(":")[2], node.start_mark)


# JSON has none of them, and Helm makes of each something else than PyYAML.
for _tag in ("binary", "omap", "pairs", "set", "timestamp"):
    Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _refuse_tag)


_BRACKET = re.compile(r"[\[{]")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")


def _require_no_marks(text: str) -> None:
    """Refuse a byte order mark behind the beginning of the text. Raises yaml.YAMLError.

    libyaml drops it at the beginning of any line, Go reads it as a character there. Wherever else it is, Go drops the
    first character of each following line if its buffer begins with the mark, which depends on the bytes before it.
    """
    place = text.find("\ufeff", 1)
    if place > 0:
        what = 'a byte order mark (U+FEFF) within the text: remove it, or write "\\uFEFF"'
        raise _ambiguous(what, _mark(text, place))


def _mark(text: str, place: int) -> yaml.Mark:
    return yaml.Mark("", place, len(_LINE_BREAK.findall(text, 0, place)), 0, None, 0)


_ODD_TOKEN = re.compile(r"!(?:\s|<!>)|(?<![^\s,\[\]{}])[^\s,\[\]{}!]*+![^\s,\[\]{}]*+,|(?<![^\s\ufeff])%YAML")
"""What may be a lone `!`, a tag with a comma behind it, or a version: each word is read once, however long it is."""


def _require_plain_tokens(text: str) -> None:
    """Refuse what Helm reads differently than libyaml, or not at all. Raises yaml.YAMLError.

    `!` before a value makes a text of it for Helm alone, which also takes a comma for a part of the tag before it, and
    a question mark in brackets for the beginning of a key.
    """
    if not _ODD_TOKEN.search(text) and ("?" not in text or not _BRACKET.search(text)):
        return
    before: yaml.Token | None = None
    depth = 0
    for token in yaml.scan(text, Loader=FastLoader):
        if isinstance(token, (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)):
            depth += 1
        elif isinstance(token, (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)):
            depth -= 1
        elif isinstance(token, yaml.ScalarToken) and depth and token.plain and "?" in token.value:
            raise _ambiguous("a question mark without quotes in brackets", token.start_mark)
        elif isinstance(token, yaml.DirectiveToken) and token.name == "YAML" and token.value != (1, 1):
            raise _ambiguous("%YAML {}.{}, where 1.1 is expected".format(*token.value), token.start_mark)
        if isinstance(before, yaml.TagToken):
            _require_plain_tag(before, token)
        before = token


def _require_plain_tag(tag: yaml.TagToken, following: yaml.Token) -> None:
    if isinstance(following, yaml.FlowEntryToken) and following.start_mark.index == tag.end_mark.index:
        what = f"a comma directly after the tag {''.join(filter(None, tag.value))}, where a space is expected"
        raise _ambiguous(what, tag.start_mark)
    if tag.value in ((None, "!"), ("!", ""), ("", "!")):
        raise _ambiguous("a lone ! before a value", tag.start_mark)


_UNLIKE_SEPARATOR = re.compile(r"---(?:(?<=[\r\x85\u2028\u2029]---)|(?<![^\n]---)(?=\S))")
"""Dashes that start a document for YAML alone, or for Kubernetes alone, which splits at a newline and three dashes."""


def _require_plain_separators(text: str) -> None:
    """Refuse a separator of documents that not all readers take for one. Raises yaml.YAMLError."""
    found = _UNLIKE_SEPARATOR.search(text)
    if found is not None:
        raise _ambiguous("--- is not on a line of its own", _mark(text, found.start()))


def _key_text(key: object, node: yaml.Node) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, float):
        return _float_text(key)
    if isinstance(key, (str, int)):
        return str(key)
    raise yaml.constructor.ConstructorError(None, None, "a key is null or not a plain word", node.start_mark)


def helm_text(value: str | bool | float) -> str:
    """Return what Helm makes of a value where it expects a text: `true` of true, `1.1` of 1.10."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = _float_text(value)
        return {".inf": "+Inf", "-.inf": "-Inf", ".nan": "NaN"}.get(text, text)
    return str(value)


def _float_text(value: float) -> str:
    """Return a number as Go's strconv.FormatFloat(value, 'g', -1, 32) writes it, which makes texts of such keys."""
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        single = math.copysign(math.inf, value)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    shortest = (f"{single:.{places}e}" for places in range(9))
    text = next(each for each in shortest if struct.unpack("f", struct.pack("f", float(each))) == (single,))
    digits, _, exponent = text.partition("e")
    number = int(exponent)
    if single and not -5 < number < 6:
        return f"{digits}e{'-' if number < 0 else '+'}{abs(number):02}"
    return f"{Decimal(text):f}"
