"""What programs and other people write cannot steer the terminal that shows it, in any command or format."""

from __future__ import annotations

import ast
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainchart.actions import plan
from trainchart.cli.explain import explain
from trainchart.cli.output import dump_json, print_error, print_lines, spell_out
from trainchart.errors import ToolError
from trainchart.reports.text import clean_lines
from trainchart_runtime.log_text import clean, visible_line

COMMANDS = Path(__file__).parents[2] / "generator" / "trainchart" / "cli"
CLIPBOARD, TITLE, CLEAR, C1, TURNED = (
    "\x1b]52;c;ZWNobw==\x07",
    "\x1b]0;owned\x1b\\",
    "\x1b[2J",
    "\x9b2J",
    "\u202egnp.exe",
)
HOSTILE = "".join((CLIPBOARD, TITLE, CLEAR, C1, TURNED, "\x00\x7f\x85\u2028\ufeff\ud800"))


def steers(text: str) -> bool:
    """Say whether a text has anything in it that a terminal does not just show."""
    return any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text if char not in "\n\t")


def turns(char: str) -> bool:
    """Say whether a character turns the direction of writing."""
    kinds = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return unicodedata.bidirectional(char) in kinds


@given(st.text() | st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "L"])))
@example(HOSTILE)
def test_no_text_steers_the_terminal(text: str) -> None:
    assert not steers(spell_out(text))
    # Lines of programs keep what only joins their characters.
    assert not steers("".join(char for char in clean(text) if unicodedata.category(char) != "Cf" or turns(char)))
    assert clean_lines([text]) == [clean(text)]


@given(st.dictionaries(st.text(), st.text() | st.integers()))
@example({HOSTILE: HOSTILE})
def test_json_says_the_same_without_steering(value: dict[str, str]) -> None:
    for indent in (None, 2):
        text = dump_json(value, indent)
        assert not steers(text)
        assert json.loads(text) == value


def test_of_what_steers_nothing_is_left_and_of_words_everything() -> None:
    assert clean(f"a{CLIPBOARD}b{TITLE}c{CLEAR}d{C1}e{TURNED}") == "abcdegnp.exe"
    assert clean("größe 训练 🚀\tend") == "größe 训练 🚀\tend"
    assert visible_line("10%\r\x1b[31m100%\x1b[0m\r") == "100%"


def test_commands_print_in_one_way() -> None:
    """Through output.py, which spells out what steers; but for the lines that --raw asks for."""
    found = [
        (path.name, node.lineno)
        for path in sorted(COMMANDS.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert {name for name, _ in found} <= {"output.py", "logs.py"}, found
    assert [name for name, _ in found].count("logs.py") == 1


def test_a_line_break_makes_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines(["a\nforged", "b"])
    assert capsys.readouterr().out == "a\\nforged\nb\n"


def test_a_key_with_a_line_break_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plan.Explanation("annotations.a\nforged", "x", None, ())
    monkeypatch.setattr(plan, "explain_key", lambda *_: [found])
    explain("mnist", "")
    assert capsys.readouterr().out == 'annotations.a\\nforged = "x"  # empty by default\n'


def test_an_error_forges_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ToolError("a\nhint: forged", hint="b\nerror: forged"))
    assert capsys.readouterr().err == "error: a\n  hint: forged\nhint: b\n  error: forged\n"


@pytest.mark.parametrize("command", ["compare", "diff", "explain", "serve", "top", "upgrade"])
def test_commands_keep_each_line_one_line(command: str) -> None:
    calls = [
        node for node in ast.walk(ast.parse((COMMANDS / f"{command}.py").read_text())) if isinstance(node, ast.Call)
    ]
    joined = [ast.unparse(call) for call in calls if ast.unparse(call).startswith("print_line('\\n'.join(")]
    assert not joined
