"""Shell scripts of one line or a few, as the one program that they start; none that does more is taken apart. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

SHELLS = ("ash", "bash", "dash", "ksh", "sh", "zsh")
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_KEYWORDS = {"if", "for", "while", "until", "case", "function", "select", "{", "!", "[", "[[", "eval", "source", "."}
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([^}]{0,1000})\})")
_LONGEST = 10_000
"""Characters of a script that is read: no shell script of a few lines is longer."""


@dataclass(frozen=True)
class ShellProgram:
    """The program that a script ends in, and what it sets before."""

    words: tuple[str, ...]
    """Its words; `$NAME` of the shell is still in them."""
    folder: str = ""
    """Where it starts, as far as the script goes there."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the script sets, as it is written there."""


def find_script(words: list[str]) -> str | None:
    """Return the script of `sh -c SCRIPT`; None where the words start something else."""
    if not words or PurePosixPath(words[0]).name not in SHELLS:
        return None
    for number, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word):
            rest = words[number + 1 :]
            rest = rest[1:] if rest[:1] == ["--"] else rest
            return rest[0] if len(rest) == 1 else None
        if not word.startswith("-"):
            return None
    return None


def read_script(script: str) -> ShellProgram | None:
    """Return the program that a script starts; None where it does more than set variables and change the folder."""
    if len(script) > _LONGEST:
        return None
    statements = [statement.strip() for statement in _split(script)]
    folder = ""
    variables: dict[str, str] = {}
    statements = [statement for statement in statements if statement and not re.match(r"#|set\s", statement)]
    for number, statement in enumerate(statements):
        assignment = _ASSIGNMENT.fullmatch(statement)
        if number == len(statements) - 1:
            return _read_program(statement, folder, variables)
        if statement.startswith("cd "):
            words = _read_words(statement)
            if not words or len(words) != 2 or not words[1].startswith("/") or "$" in words[1]:
                return None
            folder = words[1]
        elif assignment and _is_one_word(assignment[2]):
            variables[assignment[1]] = assignment[2]
        elif not re.fullmatch(r"export(\s+[A-Za-z_]\w*)+", statement):
            return None
    return None


def _read_program(statement: str, folder: str, variables: dict[str, str]) -> ShellProgram | None:
    """Return the last statement of a script as a program; None where only a shell can run it."""
    while match := re.match(r"([A-Za-z_]\w*)=((?:[^\s'\"$()]|'[^']*'|\"[^\"]*\")*)\s+", statement):
        variables[match[1]] = match[2]
        statement = statement[match.end() :]
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", "", statement)
    if re.search(r"[|&<>()`*?~]", bare) or re.search(r"`|\$\(", statement) or _ASSIGNMENT.fullmatch(statement):
        return None
    if "'" in statement and "$" in "".join(re.findall(r"'[^']*'", statement)):
        return None
    words = _read_words(statement)
    if not words:
        return None
    words = words[1:] if words[0] == "exec" else words
    if not words or words[0] in _KEYWORDS:
        return None
    return ShellProgram(tuple(words), folder, variables)


def _read_words(statement: str) -> list[str]:
    try:
        return shlex.split(statement)
    except ValueError:
        return []


def _is_one_word(text: str) -> bool:
    """Tell whether an assignment's value is all of its statement."""
    inner = re.sub(
        r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|\$\{[^}]*\}", "", text, flags=re.DOTALL
    )
    return not re.search(r"[\s|&<>]", inner)


def _split(script: str) -> Iterator[str]:
    """Yield the statements of a script, apart at `;`, `&&` and newlines outside of quotes and brackets."""
    text, depth, quote, number = "", 0, "", 0
    script = script.replace("\\\n", " ")
    while number < len(script):
        letter = script[number]
        if letter == "\\" and quote != "'":
            text += script[number : number + 2]
            number += 2
            continue
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter in "({":
            depth += 1
        elif letter in ")}":
            depth -= 1
        elif depth <= 0 and (letter in ";\n" or script[number : number + 2] == "&&"):
            yield text
            text = ""
            number += 2 if letter == "&" else 1
            continue
        text += letter
        number += 1
    yield text


def find_variables(word: str) -> list[str]:
    """Return the names of the shell's variables in a word, with whatever an expansion in braces does to them."""
    return [found[1] or found[2] for found in _VARIABLE.finditer(word)]


def fill_variables(word: str) -> str:
    """Return a word with `$(NAME)` for `$NAME` and `${NAME}`."""
    return _VARIABLE.sub(lambda found: f"$({found[1] or found[2]})", word)
