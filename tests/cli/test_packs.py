"""Packs of a project: what a platform team decides reaches every model, with its file and line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import trainchart.actions.support.chart_folder as chart_folder
from trainchart.archive.lock import parse_lock
from trainchart.cli.app import app
from trainchart.errors import SpecError, ToolError, TrainchartError
from trainchart.kubernetes_yaml import parse_mapping

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: parameter-server
volumes:
  checkpoints: {size: 1Gi, mountPath: /checkpoints}
"""
PROJECT = "apiVersion: trainchart/v1\nkind: Project\nextends: [{}]\n"
PackWriter = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "tiny.yaml").write_text(SPEC)
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text("print('trained')\n")
    (folder / "trainchart.yaml").write_text(PROJECT.format("packs/acme"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def pack(project: Path) -> PackWriter:
    """Writes a pack of the project."""

    def write(
        defaults: str, name: str = "acme", *, extends: str = "", folder: str = "", version: str = "1.0.0"
    ) -> Path:
        place = project / (folder or f"packs/{name}")
        place.mkdir(parents=True, exist_ok=True)
        head = f"apiVersion: trainchart/v1\nkind: Pack\nname: {name}\nversion: {version}\n"
        (place / "pack.yaml").write_text(f"{head}extends: [{extends}]\n")
        (place / "defaults.yaml").write_text(defaults)
        return place

    return write


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def fail(*arguments: str) -> TrainchartError:
    error = call(*arguments).exception
    assert isinstance(error, TrainchartError)
    return error


def values() -> dict[str, object]:
    return parse_mapping(Path("charts/tiny/values.yaml").read_text())


def test_defaults_of_packs_reach_charts_and_their_lock(project: Path, pack: PackWriter) -> None:
    pack('roles: {"*": {cpu: 2}}\nenv: {HTTP_PROXY: proxy}\n', "base")
    pack('volumes: {"*": {storageClass: cephfs}}\nroles: {ps: {cpu: 3}}\n', extends="../base")
    assert call("generate").exit_code == 0
    found = json.loads(json.dumps(values()))
    assert (found["roles"]["worker"]["cpu"], found["roles"]["ps"]["cpu"]) == (2, 3)
    assert found["volumes"]["checkpoints"]["storageClass"] == "cephfs"
    lock = parse_lock((project / "charts/tiny/trainchart.lock.yaml").read_text())
    assert [layer.name for layer in lock.layers] == ["base@1.0.0", "acme@1.0.0"]
    assert len({layer.sha256 for layer in lock.layers}) == 2
    assert call("verify", "charts/tiny").exit_code == 0
    assert call("generate", "--check").exit_code == 0


def test_explain_names_the_layers_that_a_value_overrides(pack: PackWriter) -> None:
    pack('roles: {"*": {cpu: 2}}\ntolerations: [{key: gpu}]\n', "base")
    pack("roles:\n  ps:\n    cpu: 3\ntolerations+: [{key: spot}]\n", extends="../base")
    assert call("explain", "tiny", "roles.ps.cpu").stdout.splitlines() == [
        "roles.ps.cpu = 3  # packs/acme/defaults.yaml:3:5 (pack acme 1.0.0)",
        "  overrides 2  # packs/base/defaults.yaml:1:15 (pack base 1.0.0)",
        "  overrides 1  # trainchart/plan/defaults.yaml:31:5 (built-in)",
    ]
    assert "  adds to [" in call("explain", "tiny", "tolerations").stdout
    (found,) = json.loads(call("explain", "tiny", "roles.ps.cpu", "--format", "json").stdout)
    assert [setting["value"] for setting in found["overridden"]] == [2, 1]


def test_a_changed_pack_is_noticed(project: Path, pack: PackWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    pack("env: {A: one}\n", "base")
    pack("", extends="../base")
    Path("packs/acme/defaults.yaml").unlink()
    call("generate")
    assert "up to date" in call("generate").stdout
    made = []
    write = chart_folder.write_charts
    monkeypatch.setattr(chart_folder, "write_charts", lambda *a, **k: made.append(a) or write(*a, **k))
    assert "up to date" in call("generate").stdout
    assert not made
    pack("env: {A: two}\n", "base")
    error = fail("generate", "--check")
    assert {Path(problem.where).name for problem in error.problems} >= {"values.yaml", "trainchart.lock.yaml"}
    assert call("generate").exit_code == 0
    assert values()["env"] == {"A": "two"}
    (project / "trainchart.yaml").write_text(PROJECT.format(""))
    assert call("generate").exit_code == 0
    assert values()["env"] == {}


def test_init_leaves_to_the_packs_what_they_decide(pack: PackWriter) -> None:
    pack('roles: {"*": {cpu: 2}}\nvolumes: {checkpoints: {storageClass: cephfs}}\n')
    assert call("init", "new").exit_code == 0
    written = parse_mapping(Path("models/new.yaml").read_text())
    assert written["roles"] == {"worker": {"memory": "2Gi"}}
    assert written["volumes"]["checkpoints"] == {"size": "5Gi", "mountPath": "/checkpoints"}
    explained = call("explain", "new", "volumes.checkpoints.storageClass").stdout
    assert "packs/acme/defaults.yaml" in explained


def test_init_leaves_out_what_packs_lock(pack: PackWriter) -> None:
    pack("")
    locks = 'apiVersion: trainchart/v1\nkind: Policy\nlocked: {"volumes.*.storageClass": {value: cephfs}}\n'
    Path("packs/acme/policy.yaml").write_text(locks)
    assert call("init", "new").exit_code == 0
    assert "storageClass" not in parse_mapping(Path("models/new.yaml").read_text())["volumes"]["checkpoints"]
    assert call("generate", "new").exit_code == 0


def test_a_wrong_value_in_a_pack_is_refused_at_its_line(pack: PackWriter) -> None:
    pack("run: {maxRestarts: often}\nrnu: {}\n")
    error = fail("generate")
    assert isinstance(error, SpecError)
    assert [problem.where for problem in error.problems] == [
        "packs/acme/defaults.yaml:1:7",
        "packs/acme/defaults.yaml:2:1",
    ]
    assert not Path("charts").exists()


def test_packs_that_build_on_each_other_are_refused(pack: PackWriter) -> None:
    pack("", "base", extends="../acme")
    pack("", extends="../base")
    assert fail("plan", "tiny").message == "the pack acme builds on itself: acme → base → acme"


def test_a_pack_that_two_build_on_is_one_layer(project: Path, pack: PackWriter) -> None:
    pack("env: {A: base}\n", "base")
    pack("env: {A: left}\n", "left", extends="../base")
    pack("env: {B: right}\n", "right", extends="../base")
    (project / "trainchart.yaml").write_text(PROJECT.format("packs/left, packs/right"))
    call("generate")
    assert values()["env"] == {"A": "left", "B": "right"}


def test_two_packs_of_one_name_are_refused(project: Path, pack: PackWriter) -> None:
    pack("")
    pack("", folder="packs/other", version="2.0.0")
    (project / "trainchart.yaml").write_text(PROJECT.format("packs/acme, packs/other"))
    assert fail("plan", "tiny").message == (
        "two packs are called acme: acme 1.0.0 and acme 2.0.0, named in trainchart.yaml"
    )


@pytest.mark.parametrize("outside", ["../..", "../../other", "/etc"])
def test_a_pack_builds_only_on_what_is_beside_it(project: Path, pack: PackWriter, outside: str) -> None:
    pack("", "other", folder="other")
    pack("", extends=outside)
    error = fail("plan", "tiny")
    assert isinstance(error, ToolError)
    assert error.message == f"packs/acme/pack.yaml builds on {outside}, which is neither in nor beside packs/acme"


def test_a_link_in_a_pack_leads_nowhere_outside(project: Path, pack: PackWriter) -> None:
    place = pack("")
    (place / "README.md").symlink_to("/etc/passwd")
    assert "outside packs/acme" in fail("plan", "tiny").message


def test_a_missing_pack_is_named_with_the_file_that_names_it(project: Path) -> None:
    error = fail("plan", "tiny")
    assert error.message == "packs/acme is not a folder or archive"
    assert error.hint == "trainchart.yaml names it as a pack; check the spelling"


def test_the_project_file_moves_models_and_charts(project: Path) -> None:
    (project / "trainchart.yaml").write_text(f"{PROJECT.format('')}models: ml/specs\ncharts: out/charts\n")
    (project / "ml").mkdir()
    (project / "models").rename(project / "ml" / "specs")
    assert call("generate").stdout.startswith("out/charts/tiny ")
    assert call("generate", "tiny", "--check").exit_code == 0
    assert call("verify", "out/charts/tiny").exit_code == 0
    assert call("init", "new").exit_code == 0
    assert (project / "ml/specs/new.yaml").is_file()


def test_the_nearest_project_file_makes_the_project(
    project: Path, pack: PackWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack("env: {A: pack}\n")
    monkeypatch.chdir(project / "code")
    assert call("generate").stdout.startswith("../charts/tiny ")
    assert parse_mapping((project / "charts/tiny/values.yaml").read_text())["env"] == {"A": "pack"}
    assert "/packs/acme/defaults.yaml:1:7 (pack acme 1.0.0)" in call("explain", "tiny", "env.A").stdout


def test_a_broken_project_file_stops_every_command(project: Path) -> None:
    (project / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\nextend: []\n")
    for command in (["generate"], ["plan", "tiny"], ["init", "new"], ["list"], ["run", "tiny"]):
        error = fail(*command)
        assert error.message == "the project file is not valid", command
        assert error.problems[0].where == "trainchart.yaml:3:1"
    assert not (project / "models/new.yaml").exists()


def test_a_link_inside_a_pack_is_no_way_out(project: Path, pack: PackWriter) -> None:
    place = pack("", extends=".l/../../../../../secret")
    (place / "README").mkdir()
    deep = place / "README" / "a" / "b" / "c" / "d"
    deep.mkdir(parents=True)
    (place / "README" / "l").symlink_to("a/b/c/d")
    pack("env: {A: stolen}\n", "secret", folder="../secret")
    pack("", extends="README/l/../../../../../secret")
    assert isinstance(fail("plan", "tiny"), (ToolError, SpecError))


@pytest.mark.parametrize(("planted", "left_out"), [("trainchart.yaml", ""), ("models", "trainchart.yaml")])
def test_what_another_user_planted_above_is_refused(
    project: Path, pack: PackWriter, monkeypatch: pytest.MonkeyPatch, planted: str, left_out: str
) -> None:
    pack("")
    if left_out:
        (project / left_out).unlink()
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert call("plan", "tiny").exit_code == 0
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    project.chmod(0o777)
    error = fail("plan", "tiny")
    assert error.message.endswith(f"{planted} belongs to another user, and would decide what runs here")
    # Who changes into that folder has chosen its models, and not the project file.
    monkeypatch.chdir(project)
    assert (call("plan", "tiny").exit_code == 0) is bool(left_out)


def test_many_additions_are_merged_in_time(project: Path, pack: PackWriter) -> None:
    entries = ", ".join(f"{{key: k{number}}}" for number in range(5000))
    pack(f"keywords+: [{', '.join(f'w{number}' for number in range(9000))}]\n")
    assert call("plan", "tiny").exit_code == 0
    pack(f"tolerations+: [{entries}]\n")
    assert call("explain", "tiny", "tolerations").exit_code == 0


def test_defaults_of_many_volumes_are_bounded(project: Path, pack: PackWriter) -> None:
    keys = ", ".join(f"example.com/k{number}: x" for number in range(9000))
    pack(f'volumes:\n  "*": {{annotations: {{{keys}}}}}\n')
    volumes = "".join(f"  v{number}:\n" for number in range(500))
    (project / "models/tiny.yaml").write_text(f"{SPEC}{volumes}")
    error = fail("plan", "tiny")
    assert error.message == "layers of defaults are too large"
    assert error.problems[0].where == "packs/acme/defaults.yaml"


def test_a_label_with_dots_can_be_explained(pack: PackWriter) -> None:
    pack("commonLabels: {acme.example/cost: ml}\n")
    assert "packs/acme/defaults.yaml:1:16" in call("explain", "tiny", "commonLabels.acme.example/cost").stdout
