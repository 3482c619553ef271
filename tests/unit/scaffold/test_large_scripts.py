"""Scripts that would keep `init` busy for hours, or end it with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart.actions.support import own_script
from trainchart.actions.support.own_script import OwnCode
from trainchart.errors import ToolError
from trainchart.scaffold.modules import SCRIPT_LIMIT, parse_module

DOUBLING = "\n".join(f"A{number + 1} = [A{number}, A{number}]" for number in range(40))
DOUBLING = f"import argparse\nA0 = [1]\n{DOUBLING}\n"
FLAGS = "p = argparse.ArgumentParser()\np.add_argument('--a', default=A40, choices=A40)\np.parse_args()\n"


def test_script_that_grows_while_it_is_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(DOUBLING + FLAGS)
    monkeypatch.setattr(own_script, "READ_SECONDS", 0.5)
    code = OwnCode(tmp_path / "train.py", tmp_path, ".", ("python", "train.py"))
    with pytest.raises(ToolError, match=r"takes too long to read: trainchart gave up after 0\.5 seconds"):
        code.read("")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 1\n" * (SCRIPT_LIMIT // 6 + 1), "is too large to be read"),
        (f"print(0x{'f' * 6000})", "is not a Python script that can be read"),
    ],
)
def test_script_that_is_too_large_is_refused(content: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        parse_module(content, "train.py")
