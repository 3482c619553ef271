"""Hides passwords, tokens and keys in what is kept and shown of a command line and of values, by their names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trainchart.secret_names import is_secret_name

MASK = "***"
"""Shown for the value of a secret."""
_ASSIGNMENT = re.compile(r"""(?<![\w.-])(?P<name>[\w.-]+)["']?\s*[=:]\s*""")
"""NAME= as --set takes it, several with commas between them, and "NAME": of JSON."""
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)")
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*+"|(?:\\.|[^,}\]\\])+', re.DOTALL)


def mask_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with MASK for each value whose name is that of a secret."""
    masked: list[str] = []
    before = ""
    for word in words:
        flag = _FLAG.fullmatch(before)
        is_value = flag is not None and not word.startswith("-") and is_secret_name(flag[1])
        masked.append(MASK if is_value else _mask_word(word))
        before = word
    return masked


def mask_values(values: Any) -> Any:
    """Return values, which may be nested, with MASK for each text under the name of a secret."""
    if isinstance(values, dict):
        return {
            name: MASK if isinstance(value, str) and value and is_secret_name(str(name)) else mask_values(value)
            for name, value in values.items()
        }
    return [mask_values(each) for each in values] if isinstance(values, list) else values


def _mask_word(word: str) -> str:
    masked, end = "", 0
    for found in _ASSIGNMENT.finditer(word):
        if found.start() >= end and is_secret_name(found["name"]) and (value := _VALUE.match(word, found.end())):
            masked += word[end : found.end()] + MASK
            end = value.end()
    return masked + word[end:]
