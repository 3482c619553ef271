"""docs/{cli,spec,causes}.md are what the program says now, and every command's help teaches with an example."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainchart.cli.app import COMMANDS
from trainchart.spec.model import ModelSpec

REFERENCE = Path(__file__).parent / "reference.py"
DOCS = Path(__file__).parent.parent.parent / "docs"
GENERATOR = DOCS.parent / "generator" / "trainchart"


PRINT = "import json, runpy; print(json.dumps({k: f() for k, f in runpy.run_path(PATH)['RENDERED'].items()}))"


def render(width: str, seed: str) -> dict[str, str]:
    environment = {**os.environ, "COLUMNS": width, "PYTHONHASHSEED": seed, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    command = [sys.executable, "-c", PRINT.replace("PATH", repr(str(REFERENCE)))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rendered: dict[str, str] = json.loads(done.stdout)
    return rendered


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    return render("200", "1")


@pytest.mark.parametrize("file", ["cli.md", "spec.md", "causes.md"])
def test_the_reference_is_up_to_date(rendered: dict[str, str], file: str) -> None:
    assert (DOCS / file).read_text(encoding="utf-8") == rendered[file], "run: make docs"


def test_the_table_of_causes_holds_those_of_local_runs(rendered: dict[str, str]) -> None:
    sources = [path.read_text() for package in ("local", "reports") for path in (GENERATOR / package).rglob("*.py")]
    written = {name for source in sources for name in re.findall(r'\bcause="([a-z-]+)"', source)}
    for cause in {*written, "launcher-ended", "nothing-done", "run-killed"}:
        assert f"| `{cause}` |" in rendered["causes.md"]


def test_the_reference_does_not_depend_on_the_terminal(rendered: dict[str, str]) -> None:
    assert render("40", "2") == rendered


def test_the_reference_is_complete(rendered: dict[str, str]) -> None:
    commands = re.findall(r"^## trainchart (.*)$", rendered["cli.md"], re.MULTILINE)
    assert len(commands) > len(COMMANDS)  # its sections
    for command in commands:
        section = rendered["cli.md"].partition(f"## trainchart {command}\n")[2].partition("\n## ")[0]
        assert f"$ trainchart {command}" in section, f"trainchart {command} --help has no example"
    for field in ModelSpec.model_fields.values():
        assert f"| `{field.alias}` |" in rendered["spec.md"]
    anchors = {re.sub(r"[^a-z0-9]", "", title.lower()) for title in re.findall(r"^## (.*)$", rendered["spec.md"], re.M)}
    assert set(re.findall(r"\]\(#([^)]*)\)", rendered["spec.md"])) <= anchors


def test_the_defaults_are_those_that_apply(rendered: dict[str, str]) -> None:
    shown = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*?) \|", rendered["spec.md"], re.M))
    assert shown["keep"] == "`false`; `true` for checkpoints"
    assert shown["stopGraceSeconds"] == "`15`; `30` for chief"
    assert shown["saveWaitSeconds"] == "`3`; `0` for chief, evaluator"
    assert shown["replicas"] == "`1`; `2` for worker (except with single, mirrored)"
    assert shown["flavour"] == '`"cpu"`; `"gpu"` for mirrored'
    assert (shown["size"], shown["mountPath"], shown["maxRestarts"]) == ("", "", "`3`")
