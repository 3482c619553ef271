"""Reads what Secrets hold line by line, where a template is not YAML or gives a key more than once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DOCUMENT_START = re.compile(r"(?m)^---")
_PAIR = re.compile(
    r"""(?m)^(?P<indent>[ ]*+(?:-[ ]++)*+)(?P<key>"[^\s"]++"|'[^\s']++'|[^\s:#"']++)"""
    r"""[ \t]*+:(?:[ \t]++(?P<value>.*+))?\r?$"""
)
_IN_BRACES = re.compile(
    r"""[{,][ \t]*+["']?(?P<key>[\w.-]++)["']?[ \t]*+:[ \t]*+(?P<value>"[^"]*+"|'[^']*+'|[^,}]*+)"""
)
_QUOTED = re.compile(r"""("[^"]*+"|'[^']*+')(?:\s++#.*)?""")
_BLOCK = re.compile(r"[|>][-+0-9]*+")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_NONE = ("", "~", "null", "true", "false", "{}", "[]", "{", "[")


def read_secret_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of every line below `data` and `stringData` of the Secrets in a text.

    A Secret is an object by itself or one of a List; one inside a text of another object does not count.
    """
    for document in _DOCUMENT_START.split(text):
        if "Secret" in document:
            yield from _read_document(document)


def _read_document(document: str) -> Iterator[tuple[str, str]]:
    lines = [(len(found["indent"]), found["key"].strip("\"'"), found) for found in _PAIR.finditer(document)]
    outermost = min((indent for indent, _, _ in lines), default=0)
    kinds = [(indent, _read_value(found["value"] or "")) for indent, key, found in lines if key == "kind"]
    is_list = any(indent == outermost and kind in ("List", "SecretList") for indent, kind in kinds)
    homes = {indent for indent, kind in kinds if kind == "Secret" and (is_list or indent == outermost)}
    # How far `data` is indented, and what is directly below it; deeper lines belong to a text.
    home: int | None = None
    below: int | None = None
    for indent, key, found in lines:
        if home is not None and indent > home:
            below = indent if below is None else below
            if indent == below:
                yield from _given(key, _read_block(document, found))
            continue
        home = indent if indent in homes and key in ("data", "stringData") else None
        below = None
        if home is not None:
            for pair in _IN_BRACES.finditer(found["value"] or ""):
                yield from _given(pair["key"], _read_value(pair["value"]))


def _given(key: str, value: str) -> Iterator[tuple[str, str]]:
    if value not in _NONE:
        yield key, value


def _read_block(document: str, found: re.Match[str]) -> str:
    """Return the value of a line, or the lines below it that are its value."""
    value = _read_value(found["value"] or "")
    if not _BLOCK.fullmatch(value):
        return value
    deeper = re.compile(rf"(?:\n(?:[ ]{{{len(found['indent']) + 1},}}.*+|[ \t\r]*+$))*+", re.MULTILINE)
    block = deeper.match(document, found.end())
    return block[0].strip() if block else ""


def _read_value(text: str) -> str:
    """Return what a line gives, without quotes and a comment; empty where a quoted text goes on in the next line."""
    text = text.strip().rstrip(",")
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1][1:-1]
    if text[:1] in ("'", '"') and text.count(text[0]) < 2:
        return ""
    return _COMMENT.sub("", text, count=1)
