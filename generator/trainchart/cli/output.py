"""How commands print: results to stdout, everything else to stderr, errors as text or JSON, colour only on demand."""

from __future__ import annotations

import enum
import json
import os
import sys
import unicodedata
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from trainchart.errors import TrainchartError


class Format(enum.StrEnum):
    text = "text"
    json = "json"


_chosen = Format.text


def choose_format(value: Format) -> Format:
    """Print errors in this format from now on."""
    global _chosen
    _chosen = value
    return value


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        callback=choose_format,
        is_eager=True,
        help="Format of the result and of errors. Errors about options and arguments are always text.",
    ),
]


def refuse_empty(context: typer.Context, option: typer.CallbackParam, value: str) -> str:
    """Refuse an option that is given but says nothing, as with a shell variable that is not set: no user means that."""
    source = context.get_parameter_source(option.name or "")
    if not value.strip() and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("it is empty; is a variable unset?", ctx=context, param_hint=option.opts[0])
    return value


def spell_out(text: str) -> str:
    """Return a text with its control characters spelled out: what others have written must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else ascii(char)[1:-1] for char in text)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs"


def spell_line(line: str) -> str:
    """Return a line with its control characters and line breaks spelled out: a name must not look like more lines."""
    return spell_out(line).replace("\n", "\\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print a result to stdout, each line as `spell_line` has it."""
    print("\n".join(map(spell_line, lines)))


def print_line(text: str, *, end: str = "\n", flush: bool = False) -> None:
    """Print a result to stdout, with control characters spelled out."""
    print(spell_out(text), end=end, flush=flush)


def find_width() -> int | None:
    """Return how wide the terminal is; None for a file or a pipe, which lines of any length suit."""
    return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None


def dump_json(value: Any, indent: int | None = 2) -> str:
    """Return `value` as JSON, keys in the order given, in which no character steers a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else json.dumps(char)[1:-1] for char in text)


def print_json(value: Any) -> None:
    """Print `value` to stdout as JSON, keys in the order given."""
    print(dump_json(value))


def flush_output() -> None:
    """Have what was printed reach its reader now: a command that goes on has printed its result."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as after `>&-`
            stream.flush()


def print_note(text: str) -> None:
    """Print what is not the result (progress, advice) to stderr."""
    print(spell_out(text), file=sys.stderr, flush=True)


def print_error(error: TrainchartError) -> None:
    """Print an expected failure to stderr in the chosen format: what, where, expected, hint."""
    if _chosen is Format.json:
        body = {
            "error": type(error).__name__,
            "exitCode": error.exit_code,
            "message": error.message,
            "hint": error.hint,
            "problems": [{"message": p.message, "where": p.where, "hint": p.hint} for p in error.problems],
        }
        print(dump_json(body), file=sys.stderr)
        return
    lines = [f"error: {_indent(error.message)}"]
    lines += [f"  {line}" for problem in error.problems for line in str(problem).splitlines()]
    if error.hint:
        lines.append(f"hint: {_indent(error.hint)}")
    print(spell_out("\n".join(lines)), file=sys.stderr)


def _indent(text: str) -> str:
    # What others have written, such as a name, must not look like a hint or another error.
    return text.replace("\n", "\n  ")
