"""The one owner of yamllint: its configuration, and a way to ask it about the same shape once only."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from yamllint import linter, parser
from yamllint.config import YamlLintConfig

from trainchart.kubernetes_yaml import YamlError, find_unprintable, require_few_nodes
from trainchart.yaml_limits import find_nested_deep

_COMMON = {
    "braces": {"max-spaces-inside": 1},
    "brackets": {"max-spaces-inside": 1},
    "colons": "enable",
    "commas": "enable",
    "hyphens": "enable",
    "indentation": {"spaces": "consistent", "indent-sequences": "whatever"},
    "new-lines": "enable",
    "anchors": "enable",
}
_SOURCES = _COMMON | {
    "comments": {"min-spaces-from-content": 1, "require-starting-space": True},
    "comments-indentation": "disable",
    "empty-lines": {"max": 2},
    "new-line-at-end-of-file": "enable",
    "octal-values": {"forbid-implicit-octal": True},
    "trailing-spaces": "enable",
    "truthy": {"check-keys": False, "allowed-values": ["true", "false"]},
}
# Words that rules look at; all other words of a text make no difference to its style.
_PLAIN = r"(?<![\w$])(?!(?:y|n|yes|no|on|off|true|false)\b)[A-Za-z1-9_][\w./@-]*"
_WORD = re.compile(_PLAIN, re.IGNORECASE)
# A row of words is one word; two spaces in a row are a matter of style, so they stay.
_WORDS = re.compile(rf"{_PLAIN}(?: {_PLAIN})*", re.IGNORECASE)
_DEPTH_LIMIT = 100
"""Collections in each other. For each word, yamllint looks at all that are open, so deep ones take it hours."""
_NODE_LIMIT = 100_000
"""Keys and values of a text; yamllint looks at some ten thousand a second."""
_ANCHOR = re.compile(r"(?:^|[\s\[{,])[&*]\w")


@dataclass(frozen=True)
class StyleProblem:
    line: int
    message: str
    rule: str


def find_source_problems(text: str) -> tuple[StyleProblem, ...]:
    """Return what yamllint says about YAML that a person wrote or reads."""
    # Each anchor must keep its own name.
    return _find(text if _ANCHOR.search(text) else _WORDS.sub("x", text), rendered=False)


def find_rendered_problems(text: str) -> tuple[StyleProblem, ...]:
    """Return what yamllint says about rendered YAML: indentation and the like, nothing about blank lines."""
    return _find(_WORD.sub("x", text), rendered=True)


@functools.lru_cache(maxsize=1024)
def _find(text: str, *, rendered: bool) -> tuple[StyleProblem, ...]:
    problem = _find_unreadable(text)
    if problem:
        return (problem,)
    problems = linter.run(text, _config(rendered))
    return tuple(StyleProblem(found.line, found.desc, found.rule) for found in problems if found.rule)


def _find_unreadable(text: str) -> StyleProblem | None:
    """Return why yamllint cannot check a text, or would take too long."""
    unprintable = find_unprintable(text)
    if unprintable:
        # yamllint raises where it meets one.
        return StyleProblem(unprintable, "a character that YAML forbids", "characters")
    deep = find_nested_deep(text, _DEPTH_LIMIT)
    if deep:
        return StyleProblem(deep, f"more than {_DEPTH_LIMIT} nested collections", "nesting")
    try:
        require_few_nodes([text], limit=_NODE_LIMIT)
    except YamlError as error:
        return StyleProblem(1, error.message, "size")
    return None


@functools.cache
def _config(rendered: bool) -> YamlLintConfig:
    rules = _COMMON if rendered else _SOURCES
    return YamlLintConfig(f"rules: {dict(rules)!r}".replace("True", "true").replace("False", "false"))


def find_comment_lines(text: str) -> frozenset[int]:
    """Return the lines of YAML that hold a comment, counted from 1; up to the first fault, if there is one.

    Raises YamlError where the text is too large, nested too deep, or has characters that YAML forbids.
    """
    problem = _find_unreadable(text)
    if problem:
        raise YamlError(problem.message, problem.line)
    found = parser.token_or_comment_generator(text)
    return frozenset(item.line_no for item in found if isinstance(item, parser.Comment))
