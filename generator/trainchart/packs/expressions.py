"""Expressions in CEL, the language of Kubernetes' own policies, compiled and evaluated. Pure. Owner of cel_expr_python.

An expression may use what both this library and API servers know: the standard functions and macros, and optional
fields (`object.spec.?replicas.orValue(1)`). A pack may come from anywhere, so expressions are bounded: the library
bounds nesting and iterations. What could double a text or a list again and again is bounded here: pluses, and lists and
maps of what is not constant. Such a list takes no memory, but to compare it takes as long as if it did.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cel_expr_python import cel

LENGTH_LIMIT = 4000
"""Characters; longer ones belong in several rules."""
_PLUS_LIMIT = 4
_BUILDER_LIMIT = 2
_RAW = r"\b[bB]?[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n]*\"|'[^'\n]*')"
_ESCAPED = r"\"\"\"(?:\\[\s\S]|[^\\])*?\"\"\"|'''(?:\\[\s\S]|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_TEXT = re.compile(rf"//[^\n]*|{_RAW}|{_ESCAPED}")
"""A comment or a string, which may look like the start of each other."""
_CONSTANTS = re.compile(r"[\[{](?:[\s\d.,:-]|\b(?:true|false|null)\b)*[\]}]")
"""A list or map that always holds the same, or an index; its texts have become numbers."""
_BUILDER = re.compile(r"\{|(?:(?<![\w\])}\s])|\bin)\s*\[|\.\s*map\s*\(")
"""What makes a list or map; a bracket behind a name or another bracket is an index."""
_REASON = re.compile(r"^(?:[A-Z_]+: )?(?:ERROR: <input>:\d+:(?P<column>-?\d+): )?(?P<reason>[^\n]*)")
_TAIL = re.compile(r" \(in container ''\)| \[[A-Z_]+\]$")


def require_boolean(expression: str, variables: tuple[str, ...]) -> None:
    """Refuse an expression over `variables` that cannot say yes or no.

    Raises:
        ValueError: it is too long, not CEL, uses unknown names, or gives something else; says what and where.
    """
    _compile(expression, variables)


def evaluate(expression: str, variables: Mapping[str, Any]) -> bool:
    """Return what an expression says of `variables`, each of which is plain data.

    Raises:
        ValueError: it gives no answer, as where it reads a field that is not there.
    """
    program = _compile(expression, tuple(sorted(variables)))
    try:
        found = program.eval(data=dict(variables))
        kind = found.type().name().lower()
        # Of a list that holds another one a hundred times, Python would make a hundred.
        answer = found.plain_value() if kind in ("bool", "error") else None
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(_describe(str(error))) from error
    if isinstance(answer, bool):
        return answer
    raise ValueError(_describe(str(answer)) if kind == "error" else f"it returns {kind}, not true or false")


@functools.lru_cache(maxsize=1000)
def _compile(expression: str, variables: tuple[str, ...]) -> cel.Expression:
    if len(expression) > LENGTH_LIMIT:
        raise ValueError(f"the expression is longer than {LENGTH_LIMIT:,} characters")
    code = _TEXT.sub(lambda found: " " if found[0].startswith("//") else "0", expression)
    if code.count("+") > _PLUS_LIMIT:
        raise ValueError(f"the expression has more than {_PLUS_LIMIT} plus signs")
    if _count_builders(code) > _BUILDER_LIMIT:
        raise ValueError(f"the expression builds more than {_BUILDER_LIMIT} lists or maps of non-constant values")
    if not all(character.isprintable() or character.isspace() for character in expression):
        raise ValueError("the expression contains control characters")
    # Imported where it is needed: few projects have rules.
    from cel_expr_python import cel

    try:
        program = _environment(variables).compile(expression)
    except (RuntimeError, ValueError) as error:
        raise ValueError(_describe(str(error))) from error
    if program.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise ValueError(f"the expression returns {program.return_type().name().lower()}, not true or false")
    return program


def _count_builders(code: str) -> int:
    """Return how many lists and maps an expression makes, whose texts are numbers here."""
    before = ""
    while code != before:
        before, code = code, _CONSTANTS.sub("0", code)
    return len(_BUILDER.findall(f" {code}"))


@functools.cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN), extensions=[ext_optional.ExtOptional()])


def _describe(text: str) -> str:
    """Return the first thing that the library says, without its marks and pictures."""
    found = _REASON.match(text)
    reason = _TAIL.sub("", found["reason"] if found else text)
    column = int(found["column"] or 0) if found else 0
    return f"{reason[:1].lower()}{reason[1:]}" + (f", at character {column}" if column > 0 else "")
