"""upgrade: all charts of a project after a pack has changed, each kind of change once, and nothing lost."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trainchart.actions import upgrade as upgrade_action
from trainchart.actions.support import chart_folder
from trainchart.cli.app import app
from trainchart.errors import ChecksFailed, RenderError, SpecError, ToolError, TrainchartError

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: {name}
description: A tiny model.
image: {{repository: registry.example.com/tiny, tag: "1.0"}}
code: {{path: code, command: [python, train.py]}}
strategy: single
"""
MODELS = ("digits", "lstm", "mnist", "sine", "wide")
SOME = ("digits", "mnist", "wide")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with five generated charts and a pack that says nothing yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "models").mkdir()
    for name in MODELS:
        (tmp_path / "models" / f"{name}.yaml").write_text(SPEC.format(name=name))
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trained')\n")
    assert call("pack", "init", "acme").exit_code == 0
    assert call("generate").exit_code == 0
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fail(*arguments: str) -> TrainchartError:
    error = call(*arguments).exception
    assert isinstance(error, TrainchartError)
    return error


def set_defaults(text: str) -> None:
    Path("packs/acme/defaults.yaml").write_text(text)


def test_chart_that_does_not_render_has_no_known_effect(project: Path) -> None:
    Path("charts/digits/templates/broken.yaml").write_text('{{ fail "out of order" }}\n')
    shown = call("upgrade", "--overwrite", "--check").stdout
    assert "digits: objects not compared, because the current chart does not render: " in shown
    assert "out of order" in shown
    assert "upgrade of a release: unknown: digits" in shown
    told = json.loads(call("upgrade", "--overwrite", "--check", "--format", "json").stdout)
    assert [(chart["name"], chart["effect"]) for chart in told["charts"]] == [("digits", "unknown")]


def test_what_all_charts_change_is_shown_once(project: Path) -> None:
    set_defaults("run: {maxRestarts: 7}\n")
    shown = call("upgrade")
    lines = shown.stdout.splitlines()
    assert "patch: the default of run.maxRestarts changes from 3 to 7   [all 5 charts]" in lines
    assert len([line for line in lines if "maxRestarts" in line]) == 1
    assert "upgrade of a release: restarts training: all 5 charts" in lines
    assert "next version: patch: all 5 charts" in lines
    assert lines[-1] == "5 changed, 0 new, 0 up to date"
    assert "5 charts written" in shown.stderr
    assert call("generate", "--check").exit_code == 0
    assert call("upgrade").stdout == "0 changed, 0 new, 5 up to date\n"


def test_check_writes_nothing_and_fails_if_anything_changes(project: Path) -> None:
    before = Path("charts/mnist/values.yaml").read_text()
    assert call("upgrade", "--check").exit_code == 0
    set_defaults("run: {maxRestarts: 7}\n")
    error = fail("upgrade", "--check")
    assert isinstance(error, ChecksFailed)
    assert error.hint == "run: trainchart upgrade"
    assert Path("charts/mnist/values.yaml").read_text() == before


def test_the_json_names_charts_and_changes(project: Path) -> None:
    set_defaults("strategies: {single: {run: {maxRestarts: 7}}}\n")
    found = json.loads(call("upgrade", "digits", "mnist", "--format", "json").stdout)
    assert found["charts"] == [
        {
            "name": name,
            "bump": "patch",
            "effect": "restarts training",
            "oldVersion": "0.1.0",
            "nextVersion": "0.1.1",
            "version": "0.1.0",
        }
        for name in ("digits", "mnist")
    ]
    worker = next(change for change in found["changes"] if change["text"] == "StatefulSet release-CHART-worker")
    assert worker["charts"] == ["digits", "mnist"]
    assert worker["effect"] == "restarts training"
    assert worker["lines"][-2:] == ["- 3", "+ 7"]


def test_a_new_chart_is_named_and_written(project: Path) -> None:
    Path("models/new.yaml").write_text(SPEC.format(name="new"))
    assert call("upgrade").stdout.splitlines() == ["new: new", "0 changed, 1 new, 5 up to date"]
    assert Path("charts/new/Chart.yaml").is_file()


def test_an_edit_by_hand_is_refused_and_nothing_is_written(project: Path) -> None:
    set_defaults("run: {maxRestarts: 7}\n")
    edited = Path("charts/lstm/values.yaml")
    edited.write_text(edited.read_text() + "# mine\n")
    error = fail("upgrade")
    assert isinstance(error, ChecksFailed)
    assert [problem.where for problem in error.problems] == ["charts/lstm/values.yaml"]
    assert "    | +# mine" in error.problems[0].message
    assert "(compared with what is generated now)" in error.problems[0].message
    assert error.problems[0].hint == "set those that you changed in models/lstm.yaml: run.maxRestarts: 3"
    assert "maxRestarts: 3" in Path("charts/mnist/values.yaml").read_text()
    assert call("upgrade", "--overwrite").exit_code == 0
    assert "# mine" not in edited.read_text()


def test_a_chart_that_cannot_be_compared_is_named(project: Path) -> None:
    Path("charts/sine/values.yaml").write_text("a: [\n")
    error = fail("upgrade", "--overwrite")
    assert isinstance(error, ToolError)
    assert error.message.startswith("charts/sine cannot be compared: values.yaml")
    assert error.hint == "to skip the comparison: trainchart generate sine --overwrite"


def test_a_wrong_pack_changes_no_chart(project: Path) -> None:
    set_defaults("run: {maxRestarts: often}\n")
    error = fail("upgrade")
    assert isinstance(error, SpecError)
    assert error.problems[0].where == "packs/acme/defaults.yaml:1:7"
    assert "maxRestarts: 3" in Path("charts/mnist/values.yaml").read_text()


def test_bump_writes_next_versions_into_specs(project: Path) -> None:
    wide = Path("models/wide.yaml")
    wide.write_text(wide.read_text().replace("name: wide\n", 'name: wide  # ours\nversion: "2.0.0"  # by hand\n'))
    set_defaults("run: {maxRestarts: 7}\n")
    lines = call("upgrade", *SOME, "--bump").stdout.splitlines()
    assert "models/mnist.yaml: version: 0.1.0 → 0.1.1" in lines
    assert not [line for line in lines if line.startswith("models/wide.yaml")]
    assert "name: mnist\nversion: 0.1.1\n" in Path("models/mnist.yaml").read_text()
    assert 'name: wide  # ours\nversion: "2.0.0"  # by hand\n' in wide.read_text()
    assert "\nversion: 0.1.1\n" in Path("charts/mnist/Chart.yaml").read_text()
    assert call("generate", *SOME, "--check").exit_code == 0
    assert call("upgrade", *SOME, "--bump").stdout == "0 changed, 0 new, 3 up to date\n"


def test_bump_with_check_writes_no_spec(project: Path) -> None:
    before = Path("models/mnist.yaml").read_text()
    set_defaults("run: {maxRestarts: 7}\n")
    told = json.loads(call("upgrade", *SOME, "--check", "--bump", "--format", "json").stdout)
    assert {chart["version"] for chart in told["charts"]} == {"0.1.1"}
    assert Path("models/mnist.yaml").read_text() == before


def test_an_interrupted_bump_is_completed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = upgrade_action.write_chart

    def stop_at_the_second(prepared: chart_folder.PreparedChart, charts: Path) -> None:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(write(prepared, charts))

    set_defaults("run: {maxRestarts: 7}\n")
    monkeypatch.setattr(upgrade_action, "write_chart", stop_at_the_second)
    assert call("upgrade", *SOME, "--bump").exit_code != 0
    monkeypatch.undo()
    monkeypatch.chdir(project)
    assert call("upgrade", *SOME, "--bump").exit_code == 0
    for name in SOME:
        assert "\nversion: 0.1.1\n" in Path(f"charts/{name}/Chart.yaml").read_text()
        assert "\nversion: 0.1.1\n" in Path(f"models/{name}.yaml").read_text()


def test_a_chart_that_would_not_render_is_not_written(project: Path) -> None:
    before = Path("charts/mnist/values.yaml").read_text()
    templates = Path("packs/acme/templates")
    templates.mkdir(exist_ok=True)
    (templates / "broken.yaml").write_text('{{ fail "out of order" }}\n')
    error = fail("upgrade", *SOME)
    assert isinstance(error, RenderError)
    assert len(error.problems) == len(SOME)
    assert "chart digits does not render" in str(error.problems[0])
    assert Path("charts/mnist/values.yaml").read_text() == before
    Path("models/new.yaml").write_text(SPEC.format(name="new"))
    assert len(fail("upgrade", *SOME, "new").problems) == len(SOME) + 1


def test_an_edit_is_compared_with_what_git_holds(project: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "charts"]):
        subprocess.run([*git, *arguments], check=True)
    edited = Path("charts/lstm/values.yaml")
    edited.write_text(edited.read_text().replace("maxRestarts: 3", "maxRestarts: 5"))
    subprocess.run([*git, "commit", "-q", "-a", "-m", "an edit"], check=True)
    set_defaults("run: {activeDeadline: 48h}\n")
    problem = fail("upgrade").problems[0]
    lines = [line.strip(" |").partition("  #")[0] for line in problem.message.splitlines()]
    assert [line for line in lines if line.startswith(("-", "+"))] == ["-  maxRestarts: 3", "+  maxRestarts: 5"]
    assert problem.hint == "set in models/lstm.yaml: run.maxRestarts: 5"
