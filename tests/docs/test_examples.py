"""What an example's README says to type finds its files in the one folder that it names; nothing is trained here."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import run

import pytest

ROOT = Path(__file__).parents[2]
READMES = sorted((ROOT / "examples").glob("*/README.md"))
BLOCK = re.compile(r"(.*)\n\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAMS = """
pip() { :; }
python() { if [ "$1" = -m ]; then ls "${2//.//}.py"; else ls "$1"; fi; }
trainchart() { [ "$1" != run ] || ls "models/$2.yaml"; }
"""
"""In place of the real ones: each only looks whether what it would start is there."""


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_a_block_can_be_typed_in_one_folder(readme: Path) -> None:
    text = readme.read_text(encoding="utf-8")
    installed = "From the project's folder, with trainchart [installed](../../README.md#install):"
    folders = {installed: ROOT, "From the project's folder:": ROOT, "In this folder:": readme.parent}
    blocks = [(before.splitlines()[-1], commands) for before, commands in BLOCK.findall(text)]
    assert len(blocks) == text.count("```") / 2 > 0
    for before, commands in blocks:
        assert before in folders, f"{readme.parent.name} does not say where to type {commands}"
        script = f"set -e{PROGRAMS}{commands}"
        done = run(["bash", "-c", script], cwd=folders[before], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
