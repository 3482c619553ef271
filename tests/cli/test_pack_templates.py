"""Templates of packs, from the folder to Helm: added, overriding, accepted, published, and refused with their place."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import trainchart.actions.pack
import trainchart.actions.support.models
from trainchart.archive.read import parse_archive
from trainchart.cli.app import app
from trainchart.errors import SpecError, ToolError, TrainchartError
from trainchart.helm.io.choose import find_engine
from trainchart.resources import read_family

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: {name}
description: A tiny model.
image: {{repository: registry.example.com/tiny, tag: "1.0"}}
code: {{path: code, command: [python, train.py]}}
strategy: parameter-server
"""
POD = "templates/_pod_template.tpl"
PROXY = f"""\
<% extends "{POD}" %>

<% block training_env %>
<%= super() %>
        - name: HTTPS_PROXY
          value: http://proxy.acme.example:3128
<% endblock %>
"""
MONITOR = """\
apiVersion: example.com/v1
kind: Monitor
metadata:
  {{- include "<%= name %>.metadata" (dict "context" . "component" "x" "name" (include "acme.monitor" .)) | nindent 2 }}
roles: [<%= roles | join(", ") %>]
"""
HOUSE = '{{- define "acme.monitor" -}}{{ .Release.Name }}-<%= name %>{{- end -}}\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "tiny.yaml").write_text(SPEC.format(name="tiny"))
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text("print('trained')\n")
    monkeypatch.chdir(folder)
    assert call("pack", "init", "acme").exit_code == 0
    return folder


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def succeed(*arguments: str) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.exception
    return result.stdout


def fail(*arguments: str) -> TrainchartError:
    error = call(*arguments).exception
    assert isinstance(error, TrainchartError)
    return error


def write(**files: str) -> None:
    """Write templates of the pack, by the last part of their name."""
    for name, text in files.items():
        path = Path(
            "packs/acme",
            POD if name == "pod" else f"templates/{name}.yaml" if name != "house" else "templates/_house.tpl",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def change_family(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let trainchart have another block than the pack was written against."""
    for results in list(Path(os.environ["XDG_CACHE_HOME"]).rglob("results")):
        shutil.rmtree(results)  # another version of trainchart has none
    family = dict(read_family("training-job"))
    assert old in family[POD]
    family[POD] = family[POD].replace(old, new)
    for module in (trainchart.actions.pack, trainchart.actions.support.models):
        monkeypatch.setattr(module, "read_family", lambda name: family)


@pytest.mark.helm
@pytest.mark.parametrize("engine", ["sdk", "helm3", "helm4"])
def test_helm_renders_what_a_pack_adds_and_changes(engine: str, helm3: Path, helm4: Path) -> None:
    write(pod=PROXY, monitor=MONITOR, house=HOUSE)
    assert succeed("pack", "accept", "packs/acme") == f"packs/acme/{POD}  training_env  accepted\n"
    succeed("generate")
    program = {"sdk": "sdk", "helm3": str(helm3), "helm4": str(helm4)}[engine]
    if engine == "sdk":
        assert succeed("pack", "check") == "packs/acme  acme 0.1.0  valid\n"
    manifests = find_engine(program).render(Path("charts/tiny"), release="exp").manifests
    (monitor,) = (manifest for manifest in manifests if manifest.kind == "Monitor")
    assert (monitor.name, monitor.document["roles"]) == ("exp-tiny", ["chief", "worker", "ps"])
    pods = [each.document["spec"]["template"]["spec"] for each in manifests if each.kind == "StatefulSet"]
    assert len(pods) == 3
    for pod in pods:
        assert {"name": "HTTPS_PROXY", "value": "http://proxy.acme.example:3128"} in pod["containers"][0]["env"]


def test_changed_block_is_found_accepted_and_found_again() -> None:
    write(pod=PROXY)
    assert "the overridden text of the block training_env" in str(fail("generate").problems[0])
    succeed("pack", "accept", "packs/acme")
    succeed("generate")
    line = '        {{- include "<%= name %>.env" . | nindent 8 }}\n'
    for new in (f"        - {{name: A, value: b}}\n{line}", line):
        with pytest.MonkeyPatch.context() as patch:
            change_family(patch, line, new)
            for command in (("generate",), ("generate", "--check"), ("upgrade",), ("pack", "check")):
                (problem,) = fail(*command).problems
                assert problem.message.startswith("the overridden block training_env has changed\n")
                assert problem.where == f"packs/acme/{POD}:3"
                assert problem.hint == "adapt the override, then run: trainchart pack accept packs/acme"
            assert succeed("pack", "accept", "packs/acme") == f"packs/acme/{POD}  training_env  accepted\n"
            assert succeed("pack", "accept", "packs/acme") == f"packs/acme/{POD}  training_env  unchanged\n"
            succeed("generate", "--overwrite")


def test_accept_drops_what_is_not_overridden_any_more() -> None:
    write(pod=PROXY)
    succeed("pack", "accept", "packs/acme")
    base = Path("packs/acme/bases/_pod_template.tpl")
    assert '{{- include "<%= name %>.env" . | nindent 8 }}' in base.read_text()
    Path("packs/acme", POD).unlink()
    assert call("pack", "accept", "packs/acme").stderr == "the pack overrides no blocks\n"
    assert not base.exists()
    write(pod=PROXY)
    assert json.loads(succeed("pack", "accept", "packs/acme", "--format", "json")) == [
        {"template": f"packs/acme/{POD}", "block": "training_env", "isChanged": True}
    ]


def test_changed_template_is_noticed_by_known_results_and_lock() -> None:
    write(monitor=MONITOR, house=HOUSE)
    succeed("generate")
    lock = Path("charts/tiny/trainchart.lock.yaml")
    before = lock.read_text()
    assert "up to date" in succeed("generate")
    write(monitor=MONITOR + "more: true\n")
    assert "2 files changed" in succeed("generate")
    assert lock.read_text() != before
    write(monitor=MONITOR)
    shown = succeed("upgrade")
    assert "applied in place: Monitor release-CHART" in shown
    assert lock.read_text() == before


def test_chart_that_helm_cannot_read_is_found_by_check() -> None:
    write(monitor="kind: Monitor\nmetadata: {name: x}\na: [\n")
    succeed("generate")
    (problem,) = fail("pack", "check").problems
    assert problem.where == "packs/acme/templates/monitor.yaml"
    assert "templates/monitor.yaml" in problem.message
    write(monitor='<% if strategy.name == "in-graph" %>\n{{ fail "out of order" }}\n<% endif %>\n')
    (problem,) = fail("pack", "check").problems
    assert "out of order" in problem.message
    assert "strategy in-graph" in problem.hint


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("template/x.yaml", "unknown file or folder template"),
        ("ci/x.yaml", "unknown file or folder ci"),
        ("templates/NOTES.md", "not a valid template name"),
        ("templates/.x.yaml", "not a valid template name"),
        ("templates/x y.yaml", "not a valid template name"),
        ("bases/x.txt", "not a valid template name"),
    ],
)
def test_path_that_no_template_can_have_is_refused(path: str, message: str) -> None:
    file = Path("packs/acme", path)
    file.parent.mkdir()
    file.write_text("a: 1\n")
    (problem,) = fail("generate").problems
    assert problem.message == message
    assert problem.where.startswith("packs/acme/")
    assert problem.hint


def test_templates_that_are_no_text_or_too_large_are_refused() -> None:
    write(monitor="a" * 150_000)
    assert [problem.message for problem in fail("generate").problems] == ["more than 128 KiB"]
    Path("packs/acme/templates/monitor.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (problem,) = fail("generate").problems
    assert (problem.message, problem.where) == ("not UTF-8 text", "packs/acme/templates/monitor.yaml:2")


def test_link_out_of_a_pack_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("password: x\n")
    folder = Path("packs/acme/templates")
    folder.mkdir()
    (folder / "x.yaml").symlink_to(secret)
    error = fail("generate")
    assert isinstance(error, ToolError)
    assert "outside " in error.message
    (folder / "x.yaml").unlink()
    folder.rmdir()
    folder.symlink_to("/etc")
    assert "outside " in fail("generate").message


@pytest.mark.helm
def test_published_templates_are_read_back_and_not_by_helm(
    tmp_path: Path, helm3: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(pod=PROXY, monitor=MONITOR, house=HOUSE)
    succeed("pack", "accept", "packs/acme")
    succeed("generate")
    lock = Path("charts/tiny/trainchart.lock.yaml").read_text()
    repository = f"file://{tmp_path}/repository"
    succeed("pack", "publish", "packs/acme", "--to", repository)
    Path("trainchart.yaml").write_text(
        "apiVersion: trainchart/v1\nkind: Project\n"
        f'extends: [{{repository: "{repository}", name: acme, version: 0.1.0}}]\n'
    )
    succeed("pack", "update")
    assert "up to date" in succeed("generate")
    assert Path("charts/tiny/trainchart.lock.yaml").read_text() == lock
    (archive,) = (tmp_path / "repository").rglob("acme-0.1.0.tgz")
    user = tmp_path / "user"
    (user / "charts").mkdir(parents=True)
    (user / "Chart.yaml").write_text("apiVersion: v2\nname: user\nversion: 1.0.0\n")
    (user / "charts" / archive.name).write_bytes(archive.read_bytes())
    shown = subprocess.run([helm3, "template", user], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == ""
    assert not [path for path in parse_archive(archive.read_bytes()).files if path.startswith("templates/")]
    change_family(monkeypatch, "nindent 8 }}\n<% endblock %>\n      ports", "nindent 9 }}\n<% endblock %>\n      ports")
    assert fail("generate").problems[0].hint == "use a version of the pack for this trainchart"
    assert isinstance(fail("pack", "accept", str(archive)), ToolError)


def test_pack_without_templates_needs_no_helm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert succeed("pack", "check", "--engine", "/nowhere") == "packs/acme  acme 0.1.0  valid\n"
    write(monitor=MONITOR, house=HOUSE)
    assert "there is no helm program at /nowhere" in fail("pack", "check", "--engine", "/nowhere").message


def test_helm_reads_no_files_for_a_template() -> None:
    write(monitor='kind: Monitor\nmetadata: {name: x}\ntext: {{ .Files.Get "/etc/passwd" | quote }}\n')
    succeed("pack", "check")
    succeed("generate")
    (found,) = (
        each for each in find_engine().render(Path("charts/tiny"), release="exp").manifests if each.kind == "Monitor"
    )
    assert found.document["text"] == ""


def test_template_errors_are_those_of_specs() -> None:
    write(monitor="<%= nothing %>\n")
    error = fail("generate")
    assert isinstance(error, SpecError)
    assert not Path("charts/tiny").exists()
