"""The choice of a Helm engine, and what the SDK alone cannot do."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.helm.io.choose import find_engine

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
FAKE_HELM = """#!/bin/sh
printf '%s\\n' "$@" > "$(dirname "$0")/arguments"
printf -- '---\\n# Source: plain/templates/a.yaml\\napiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: from-fake}\\n'
"""


@pytest.fixture
def fake_helm(tmp_path: Path) -> Path:
    """A program called helm that writes down its arguments and renders one object."""
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(FAKE_HELM)
    program.chmod(0o755)
    return program


def test_auto_takes_the_sdk_and_binary_takes_the_path(fake_helm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_helm.parent))
    assert find_engine().name.startswith("helm-python-sdk")
    assert find_engine("binary").name == str(fake_helm)
    assert find_engine(str(fake_helm)).name == str(fake_helm)


def test_no_engine_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="no helm program") as caught:
        find_engine()
    (package,) = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]["helm"]
    assert f"pip install {package}" in caught.value.hint
    assert "helm.sh" in caught.value.hint
    assert "helm-python-sdk is not installed" in caught.value.message
    assert "engine sdk" not in caught.value.hint
    with pytest.raises(ToolError, match="no helm program on PATH") as caught:
        find_engine("binary")
    assert "engine sdk" not in caught.value.hint
    with pytest.raises(ToolError, match="there is no helm program at"):
        find_engine("/nowhere/helm")


def test_the_sdk_refuses_other_api_versions_without_a_binary(plain_chart: Path) -> None:
    with pytest.raises(ToolError, match="cannot render for another Kubernetes version"):
        find_engine("sdk").render(plain_chart, release="exp", kube_version="1.33.0")


def test_auto_hands_other_api_versions_to_a_binary(
    fake_helm: Path, plain_chart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fake_helm.parent}:/usr/bin:/bin")
    rendering = find_engine().render(
        plain_chart, release="exp", kube_version="1.33.0", api_versions=("monitoring.coreos.com/v1",)
    )
    assert [manifest.name for manifest in rendering.manifests] == ["from-fake"]
    arguments = (fake_helm.parent / "arguments").read_text().splitlines()
    assert "--api-versions=monitoring.coreos.com/v1" in arguments
    assert arguments[arguments.index("--kube-version") + 1] == "1.33.0"


def test_a_program_that_is_not_helm(tmp_path: Path, plain_chart: Path) -> None:
    program = tmp_path / "helm"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    with pytest.raises(ToolError, match="cannot run"):
        find_engine(str(program)).render(plain_chart, release="exp")


@pytest.mark.parametrize(("end", "said"), [("exit 3", "ended with exit code 3"), ("kill -9 $$", "ended with signal 9")])
def test_a_program_that_fails_silently_is_named(tmp_path: Path, plain_chart: Path, end: str, said: str) -> None:
    program = tmp_path / "helm"
    program.write_text(f"#!/bin/sh\n{end}\n")
    program.chmod(0o755)
    engine = find_engine(str(program))
    for command in (lambda: engine.render(plain_chart, release="exp"), lambda: engine.lint(plain_chart)):
        with pytest.raises(ToolError, match=rf"{program} \w+ {said} without printing an error") as caught:
            command()
        assert caught.value.hint == "is this a helm 3 or 4 program?"


def test_a_program_in_the_current_folder(fake_helm: Path, plain_chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fake_helm.parent)
    rendering = find_engine("./helm").render(plain_chart, release="exp")
    assert [manifest.name for manifest in rendering.manifests] == ["from-fake"]


def test_the_sdk_renders_the_notes(plain_chart: Path) -> None:
    assert find_engine("sdk").render(plain_chart, release="exp").notes == "Release exp has 2 workers.\n"
