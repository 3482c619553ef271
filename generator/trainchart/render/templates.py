"""How templates are written: Jinja's delimiters, which do not collide with Helm's, and the blocks of a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

SYNTAX: dict[str, Any] = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<%=",
    "variable_end_string": "%>",
    "comment_start_string": "<%#",
    "comment_end_string": "%>",
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
    "autoescape": False,
    "auto_reload": False,
    "undefined": jinja2.StrictUndefined,
}
_READER = jinja2.Environment(**SYNTAX)


@dataclass(frozen=True)
class Block:
    """A named part of a template."""

    text: str
    """What stands in it, without the white space before tags that Jinja drops."""
    line: int


def read_blocks(source: str) -> dict[str, Block]:
    """Return the blocks of a template by name. Raises jinja2.TemplateSyntaxError where it is not a template."""
    blocks: dict[str, Block] = {}
    open_blocks: list[tuple[str, int, int]] = []
    tokens = list(_READER.lex(source))
    start = 0
    for index, (line, kind, _) in enumerate(tokens):
        if kind == "block_begin":
            start = index
        elif kind == "block_end":
            words = [value for _, each, value in tokens[start:index] if each == "name"]
            if words[:1] == ["block"] and len(words) > 1:
                open_blocks.append((words[1], index + 1, line))
            elif words[:1] == ["endblock"] and open_blocks:
                name, first, at = open_blocks.pop()
                text = "".join(value for _, _, value in tokens[first:start])
                blocks[name] = Block(text.rstrip(" \t"), at)
    return blocks


def read_texts(source: str) -> dict[str, str]:
    """Return the texts of blocks by name; none where `source` is not a template."""
    try:
        return {name: block.text for name, block in read_blocks(source).items()}
    except jinja2.TemplateError:
        return {}


def dump_blocks(template: str, texts: Mapping[str, str]) -> str:
    """Return a template that has the `texts` of blocks of `template`, to be kept and read by `read_texts`."""
    head = f"<%# Written by `trainchart pack accept`: blocks of {template}, as they were overridden. Do not edit. %>\n"
    return head + "".join(f"<% block {name} %>\n{text}<% endblock %>\n" for name, text in texts.items())
