"""Names and defaults mean the project that the current folder lies in; paths that users type start from here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trainchart.actions.support.project import find_project, list_specs
from trainchart.cli.app import app
from trainchart.errors import TrainchartError

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: {name}
description: A tiny model.
image: {{repository: registry.example.com/tiny, tag: "1.0"}}
code: {{path: code, command: [python, train.py]}}
strategy: single
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the models m-2 and m-10, and the current folder two folders deep in it."""
    folder = tmp_path / "project"
    (folder / "code" / "deep").mkdir(parents=True)
    (folder / "code" / "train.py").write_text("print('trained')\n")
    (folder / "models").mkdir()
    for name in ("m-10", "m-2"):
        (folder / "models" / f"{name}.yaml").write_text(SPEC.format(name=name))
    monkeypatch.chdir(folder / "code" / "deep")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return folder


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_charts_are_generated_into_the_project(project: Path) -> None:
    done = call("generate", "m-2")
    assert done.stdout.startswith("../../charts/m-2 ")
    assert (project / "charts" / "m-2" / "Chart.yaml").is_file()
    assert call("generate", "m-2", "--check").exit_code == 0
    assert list(Path().iterdir()) == []
    assert list_specs() == (Path("../../models/m-2.yaml"), Path("../../models/m-10.yaml"))


def test_typed_folders_start_from_here(project: Path) -> None:
    done = call("generate", "../../models/m-2.yaml", "-o", "charts")
    assert done.stdout.startswith("charts/m-2 ")
    assert Path("charts/m-2/Chart.yaml").is_file()
    assert not (project / "charts").exists()


def test_runs_are_those_of_the_project(project: Path) -> None:
    plan = json.loads(call("run", "m-2", "--dry-run", "--format", "json").stdout)
    runs = project / ".trainchart" / "runs"
    assert (plan["folder"], plan["pods"][0]["workingDirectory"]) == (str(runs / "m-2-1"), str(project / "code"))
    (runs / "exp-1").mkdir(parents=True)
    record = {"release": "exp-1", "chart": "m-2-0.1.0", "target": "m-2", "deciding": [], "pods": []}
    (runs / "exp-1" / "run.json").write_text(json.dumps(record))
    assert "exp-1" in call("list").stdout
    assert call("status").exit_code == 0
    assert call("status", "--runs-dir", ".trainchart/runs").exit_code != 0


def test_commands_name_no_folder_of_runs_in_the_project() -> None:
    assert "  trainchart logs m-2-1\n" in call("run", "m-2", "--quiet").stdout
    assert "  trainchart logs m-2-1 --runs-dir runs\n" in call("run", "m-2", "--quiet", "--runs-dir", "runs").stdout


def test_init_adds_to_the_project_and_says_so(project: Path) -> None:
    Path("own.py").write_text("print('own')\n")
    done = call("init", "own", "--from-script", "own.py")
    assert done.stdout.splitlines()[-1] == "../../models/own.yaml"
    assert f"note: this is part of the project {project}" in done.stderr
    assert "path: code/deep" in (project / "models" / "own.yaml").read_text()


@pytest.mark.parametrize(
    ("command", "hint"),
    [(("run", "M-2"), "did you mean m-2?"), (("plan", "m-3"), "did you mean m-"), (("plan", "x"), "here: m-2, m-10")],
)
def test_an_unknown_model_gets_the_names_of_those_there_are(command: tuple[str, ...], hint: str) -> None:
    error = call(*command).exception
    assert hint in getattr(error, "hint", "")


def test_a_folder_called_models_of_another_tool_is_no_project(project: Path) -> None:
    Path("models").mkdir()
    Path("models/keras.yaml").write_text("layers: 3\n")
    assert find_project().folder == Path("../..")
    Path("models/own.yml").write_text(SPEC.format(name="own"))
    assert find_project().folder == Path()
    assert call("plan", "own").exit_code == 0


def test_without_a_project_everything_is_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_project().folder == Path()
    assert call("init", "new").stdout.splitlines()[-1] == "models/new.yaml"
    assert getattr(call("logs").exception, "message", "") == "there are no local runs in .trainchart/runs"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("explain", "m-2", "roles.worker.memry"), 7),
        (("logs", "m-2-9"), 7),
        (("run", "m-2", "--strategy", "paramter-server"), 2),
        (("init", "new", "--strategy", "paramter-server"), 2),
        (("init", "My_Model"), 2),
        (("init", "new", "--image", "No Image"), 2),
        (("init", "m-2"), 7),
    ],
)
def test_one_exit_code_has_one_meaning(project: Path, arguments: tuple[str, ...], code: int) -> None:
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, TrainchartError)
    assert error.exit_code == code


@pytest.mark.parametrize("command", [("generate", "m-2"), ("run", "m-2"), ("plan", "m-2"), ("status",), ("logs",)])
def test_outside_of_a_project_the_hint_is_to_go_there(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error = call(*command).exception
    assert "there is no models/ with a spec, here or in a folder above" in getattr(error, "hint", "")


@pytest.mark.parametrize("command", ["run", "check", "package"])
def test_a_misspelt_chart_folder_gets_the_nearest_name(command: str, project: Path) -> None:
    call("generate", "m-10")
    error = call(command, "../../charts/m-01").exception
    assert getattr(error, "hint", "") == "did you mean ../../charts/m-10?"
