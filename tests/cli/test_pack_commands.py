"""pack init and pack check: a pack that works at once, and its mistakes without a model that uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trainchart.cli.app import app
from trainchart.errors import SpecError, ToolError, TrainchartError, UsageError


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fail(*arguments: str) -> TrainchartError:
    error = call(*arguments).exception
    assert isinstance(error, TrainchartError)
    return error


def test_a_new_pack_is_valid_and_reaches_new_models() -> None:
    made = call("pack", "init", "acme")
    assert made.stdout.split() == ["packs/acme/defaults.yaml", "packs/acme/pack.yaml", "trainchart.yaml"]
    assert call("pack", "check").stdout == "packs/acme  acme 0.1.0  valid\n"
    assert json.loads(call("pack", "check", "packs/acme", "--format", "json").stdout) == [
        {"name": "acme", "version": "0.1.0", "path": "packs/acme"}
    ]
    assert call("init", "first").exit_code == 0
    assert call("generate").exit_code == 0
    assert "acme@0.1.0" in Path("charts/first/trainchart.lock.yaml").read_text()


@pytest.mark.parametrize(("link", "command"), [("packs", ("pack", "init", "acme")), ("models", ("init", "net"))])
def test_nothing_is_started_outside_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, link: str, command: tuple[str, ...]
) -> None:
    here, outside = project / "here", project / "outside"
    here.mkdir()
    outside.mkdir()
    (here / link).symlink_to(outside)
    monkeypatch.chdir(here)
    error = fail(*command)
    assert isinstance(error, ToolError)
    assert f"leads to {outside}" in error.message
    assert [path.name for path in (*here.iterdir(), *outside.iterdir())] == [link]


def test_the_example_in_a_new_pack_is_valid_too() -> None:
    call("pack", "init", "acme")
    defaults = Path("packs/acme/defaults.yaml")
    head, example = defaults.read_text().split("For example:\n")
    uncommented = "".join(line[2:] + "\n" for line in example.splitlines())
    assert "storageClass: cephfs" in uncommented
    defaults.write_text(f"{head}For example:\n{uncommented}")
    assert call("pack", "check").exit_code == 0
    call("init", "first", "--strategy", "parameter-server")
    assert '"4Gi"' not in call("explain", "first", "roles.worker.memory").stdout
    assert "packs/acme/defaults.yaml" in call("explain", "first", "roles.ps.memory").stdout


def test_a_second_pack_is_left_to_the_author_to_name() -> None:
    call("pack", "init", "acme")
    before = Path("trainchart.yaml").read_text()
    assert "next: add packs/team to extends in trainchart.yaml" in call("pack", "init", "team").stderr
    assert Path("trainchart.yaml").read_text() == before
    error = fail("pack", "init", "team")
    assert isinstance(error, ToolError)
    assert error.message == "files already exist, and are never overwritten"


@pytest.mark.parametrize("name", ["Acme", "a_b", "", "../x", "a" * 41])
def test_a_name_that_no_pack_can_have_is_refused(name: str) -> None:
    assert isinstance(fail("pack", "init", name), UsageError)
    assert not Path("packs").exists()


def test_check_names_what_is_wrong_for_any_strategy() -> None:
    call("pack", "init", "acme")
    Path("packs/acme/defaults.yaml").write_text(
        'volumes:\n  "*": {storageClas: x}\nroles: {evaluator: {gpus: 3.5}}\n'
        "strategies: {in-graph: {run: {maxRestarts: x}}}\nrun: {startDeadline: 5 minutes}\n"
    )
    error = fail("pack", "check")
    assert isinstance(error, SpecError)
    assert sorted(problem.where for problem in error.problems) == [
        "packs/acme/defaults.yaml:2:9",
        "packs/acme/defaults.yaml:3:21",
        "packs/acme/defaults.yaml:4:31",
        "packs/acme/defaults.yaml:5:7",
    ]


def test_check_knows_the_fields_of_kubernetes() -> None:
    call("pack", "init", "acme")
    Path("packs/acme/defaults.yaml").write_text("tolerations: [{key: gpu, operator: 5}]\n")
    error = fail("pack", "check", "packs/acme")
    assert [problem.where for problem in error.problems] == ["packs/acme/defaults.yaml:1:26"]


def test_check_reads_what_a_pack_builds_on() -> None:
    call("pack", "init", "base")
    call("pack", "init", "acme")
    pack = Path("packs/acme/pack.yaml")
    pack.write_text(pack.read_text() + "extends: [../base]\n")
    assert call("pack", "check", "packs/acme").stdout == "packs/acme  acme 0.1.0  valid\n"
    Path("packs/base/pack.yaml").unlink()
    assert fail("pack", "check", "packs/acme").message == "packs/base is not a pack: it has no pack.yaml"


def test_check_without_a_pack_says_what_to_do() -> None:
    assert fail("pack", "check").message == "no trainchart.yaml in this folder or above lists a pack"
    assert fail("pack", "check", "nowhere").message == "nowhere is not a folder or archive"
