"""Finds what the documentation tells its readers to type: fenced blocks and the README's table of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
OVERVIEW = ROOT / "docs" / "README.md"
"""Lists the other pages, and shows no commands."""
GUIDES = (ROOT / "README.md", *sorted({*(ROOT / "docs").glob("*.md")} - {OVERVIEW}))
REFUSED = "# refused"
"""Stands behind a command that must fail."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TYPED = re.compile(r"`((?:trainchart|helm|make) [^`]*)`")


@dataclass(frozen=True)
class Command:
    line: int
    text: str
    output: tuple[str, ...] = ()
    """Lines that the guide shows as printed."""


@dataclass(frozen=True)
class Block:
    """A fenced block that is not for the shell: yaml, python, or something else."""

    line: int
    language: str
    text: str


def read_guide(guide: Path) -> list[Command | Block]:
    """Return what `guide` says to type or to write, in its order."""
    text = guide.read_text(encoding="utf-8")
    found: list[Command | Block] = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        language, body = match[1], match[2]
        found += _commands(line, language, body) if language in ("sh", "console") else [Block(line, language, body)]
    if guide.name == "README.md":
        found += _table(text)
    return sorted(found, key=lambda item: item.line)


def _commands(line: int, language: str, body: str) -> Iterator[Command]:
    lines = body.splitlines()
    starts = [n for n, text in enumerate(lines) if text.strip() and (language == "sh" or text.startswith("$ "))]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        output = tuple(lines[start + 1 : end]) if language == "console" else ()
        yield Command(line + start, lines[start].removeprefix("$ "), output)


def _table(text: str) -> Iterator[Command]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            yield from (Command(number, typed) for typed in _TYPED.findall(line))
