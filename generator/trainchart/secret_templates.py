"""What a template says itself, and what it takes from values, as far as that matters for secrets in it. Pure."""

from __future__ import annotations

import re

GIVEN_LATER = "trainchart-given-later"
"""Stands for what a template takes from elsewhere."""
_ACTION = re.compile(rb"\{\{.*?\}\}", re.DOTALL)
_ACTION_LINE = re.compile(rb"(?m)^[ \t]*+(?:\{\{(?:(?!\}\}).)*+\}\}[ \t]*+)++\r?$")
"""Consists of actions alone."""
_SILENT = re.compile(rb"\{\{-?\s*(?:(?:if|else|end|with|range|define|break|continue)\b|\$\w*\s*:?=|/\*)")
"""The beginning of an action that gives no text itself."""
_LITERAL = re.compile("trainchart-literal-([0-9a-f]*)-")
"""A text that stands inside an action; in hexadecimal digits, YAML holds any."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|`[^`]*+`?|[()|]|[^\s()|"`]+', re.DOTALL)
"""One of an action. A text without an end goes on to that of the action."""
_UNCHANGED = {"b64dec", "b64enc", "print", "printf", "quote", "squote", "toJson", "toString", "trim"}
"""Functions that give the same secret, perhaps encoded."""
_UNCHANGED_AFTER_NUMBER = {"indent", "nindent", "trunc"}
_PLACEHOLDER = re.compile(r"\$[({]|%\(|[{<]")

_Word = tuple[str, str | None]
"""The name of a function or variable, and the text that it stands for: None where a value gives it."""


def replace_actions(content: bytes) -> bytes:
    """Return a template without its actions, for `restore_literals`: without lines of them, others as single words."""
    content = _ACTION_LINE.sub(b"", content)
    # Behind the last end of an action, each start would be followed up to the end of the file.
    end = content.rfind(b"}}") + 2
    return _ACTION.sub(_replace_action, content[:end]) + content[end:] if end > 1 else content


def restore_literals(text: str) -> str:
    """Return a text of what `replace_actions` gives with the literals in it; GIVEN_LATER stays."""
    return _LITERAL.sub(lambda found: bytes.fromhex(found[1][: len(found[1]) // 2 * 2]).decode(errors="replace"), text)


def _replace_action(found: re.Match[bytes]) -> bytes:
    if _SILENT.match(found[0]):
        return b""
    literal = read_literal(found[0].decode(errors="replace"))
    if literal is None or _PLACEHOLDER.match(literal):
        return GIVEN_LATER.encode()
    return f"trainchart-literal-{literal.encode().hex()}-".encode()


def read_literal(action: str) -> str | None:
    """Return the text that an action gives where no value does, such as a default; None where it has none."""
    body = action[2:-2].removeprefix("-").removesuffix("-").strip()
    # The commands of a pipeline, and of those around it.
    open_ones: list[list[list[_Word]]] = [[[]]]
    for found in _TOKEN.finditer(body):
        match found[0]:
            case "(":
                open_ones.append([[]])
            case ")" if len(open_ones) > 1:
                literal = _follow_pipeline(open_ones.pop())
                open_ones[-1][-1].append(("", literal))
            case "|":
                open_ones[-1].append([])
            case token:
                is_text = len(token) > 1 and token[0] in '"`' and token[-1] == token[0]
                open_ones[-1][-1].append(("", token[1:-1]) if is_text else (token, None))
    return _follow_pipeline(open_ones[0]) if len(open_ones) == 1 else None


def _follow_pipeline(commands: list[list[_Word]]) -> str | None:
    given: list[_Word] = []
    for command in commands:
        given = [("", _call([*command, *given]))]
    return given[0][1]


def _call(words: list[_Word]) -> str | None:
    """Return the text that a command of these words gives."""
    if len(words) < 2:
        return words[0][1] if words else None
    name, literals = words[0][0], [literal for _, literal in words[1:]]
    if name in ("default", "coalesce", "or"):
        # An empty one only says that the value may be missing.
        return next(filter(None, literals), None)
    if name in _UNCHANGED_AFTER_NUMBER:
        literals = literals[1:]
    elif name not in _UNCHANGED:
        return None
    return literals[0] if len(literals) == 1 else None
