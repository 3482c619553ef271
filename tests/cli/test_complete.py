"""What the shell offers, asked as bash asks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import trainchart.cli
from trainchart.cli.app import COMMANDS, app
from trainchart.plan.strategies import STRATEGIES

CLI = Path(trainchart.cli.__file__).parent
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: {name}
description: A tiny model.
image: {{repository: registry.example.com/tiny, tag: "1.0"}}
code: {{path: code, command: [python, train.py, "$(TRAINCHART_HP_RATE)"]}}
strategy: single
hyperparameters:
  rate: {{type: number, default: 0.1}}
  opt: {{type: string, default: sgd, enum: [adam, sgd]}}
  on: {{type: boolean, default: true}}
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two models and the run digits-1, and no cluster."""
    (tmp_path / "models").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trained')\n")
    for name in ("digits", "words"):
        (tmp_path / "models" / f"{name}.yaml").write_text(SPEC.format(name=name))
    run = tmp_path / ".trainchart" / "runs" / "digits-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text(
        '{"release": "digits-1", "chart": {}, "pods": [{"label": "worker-0", "name": "d-worker-0", "role": "worker"}]}'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def offered(typed: str) -> list[str]:
    words = typed.split(" ")
    environ = {"_TRAINCHART_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    result = CliRunner().invoke(app, prog_name="trainchart", env=environ)
    assert result.exit_code == 0 and not result.stderr, result.output
    return result.stdout.split()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("trainchart generate d", ["digits"]),
        ("trainchart generate digits ", ["digits", "words"]),
        ("trainchart run w", ["words"]),
        ("trainchart image build w", ["words"]),
        ("trainchart logs ", ["digits-1"]),
        ("trainchart stop d", ["digits-1"]),
        ("trainchart serve d", ["digits-1"]),
        ("trainchart compare d", ["digits-1"]),
        ("trainchart compare digits-1 ", []),
        ("trainchart logs digits-1 --role w", ["worker"]),
        ("trainchart init new --strategy ", list(STRATEGIES)),
        ("trainchart logs digits-1 --pod ", ["worker-0"]),
        ("trainchart logs --pod w", ["worker-0"]),
        ("trainchart run digits --set hyperparameters.opt=", ["hyperparameters.opt=adam", "hyperparameters.opt=sgd"]),
        ("trainchart run digits --set hyperparameters.on=t", ["hyperparameters.on=true"]),
        ("trainchart rules image-", []),
        ("trainchart check charts/digits --select images-", ["images-pinned"]),
        ("trainchart explain digits hyperparameters.rate.def", ["hyperparameters.rate.default"]),
        ("trainchart run digits --set hyperparameters.r", ["hyperparameters.rate="]),
        ("trainchart run --engine sdk digits --set hyperparameters.r", ["hyperparameters.rate="]),
        # What cannot be read has no words, and no error.
        ("trainchart run no-such-model --set hyper", []),
        ("trainchart explain no-such-model ", []),
    ],
)
def test_words_that_a_shell_offers(typed: str, words: list[str]) -> None:
    assert offered(typed) == words


def test_the_commands_are_shown_in_sections() -> None:
    lines = CliRunner().invoke(app, ["--help"]).stdout.splitlines()
    assert [line for line in lines if line.endswith(":") and not line.startswith(" ")][1:] == [
        f"{section}:" for section in COMMANDS
    ]
    shown = [line.split()[0] for line in lines if re.match("  [a-z]", line)]
    assert shown[1:] == list(get_command(app).commands)  # type: ignore[attr-defined]
    assert not [line for line in lines[1:] if line.endswith("...") or len(line) > 80]


@pytest.mark.parametrize(("typed", "loaded"), [("--help", []), ("wait --help", ["trainchart.cli.wait"])])
def test_a_command_is_imported_when_it_is_asked_for(typed: str, loaded: list[str]) -> None:
    run_it = f"app({typed.split()}, standalone_mode=False)"
    code = f"import sys; from trainchart.cli.app import app; {run_it}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    commands = {f"trainchart.cli.{module.stem}" for module in CLI.glob("*.py") if "def register" in module.read_text()}
    assert sorted(commands & set(run.stdout.splitlines()[-1].split())) == loaded


def test_every_command_shown_is_one() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert [command.name for command in commands.values()] == list(commands)


@pytest.mark.parametrize("name", ["d\\$(id)", "d$(id)", "d`id`", 'd"', "d\\", "d;id", "d id", "d'", "d\u2028", "d\nid"])
@pytest.mark.parametrize("typed", ["trainchart run d", "trainchart logs d", "trainchart logs --pod d"])
def test_words_that_mean_something_to_a_shell_are_not_offered(project: Path, name: str, typed: str) -> None:
    before = offered(typed)
    (project / "models" / f"{name}.yaml").write_text(SPEC.format(name="evil"))
    run = project / ".trainchart" / "runs" / name
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"release": name, "chart": {}, "pods": [{"label": name}]}))
    assert [word for word in offered(typed) if word not in before] == []


def test_no_spec_offers_what_means_something_to_a_shell(project: Path) -> None:
    spec = SPEC.format(name="digits").replace("enum: [adam, sgd]", "enum: [adam, sgd, a$(id)]")
    (project / "models" / "digits.yaml").write_text(spec)
    words = offered("trainchart run digits --set hyperparameters.opt=")
    assert words == ["hyperparameters.opt=adam", "hyperparameters.opt=sgd"]


@pytest.mark.parametrize("command", [name for section in COMMANDS.values() for name in section])
def test_the_next_word_of_every_command_can_be_asked_for(command: str) -> None:
    offered(f"trainchart {command} ")
    offered(f"trainchart {command} x ")
    offered(f"trainchart {command} --n")
