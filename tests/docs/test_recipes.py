"""The recipes for continuous integration do what they say: their own commands, run in a copy of the project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repositories.chart_images import push_image
from tests.repositories.chart_servers import serve_registry

ROOT = Path(__file__).parent.parent.parent
RECIPES = ROOT / "docs" / "publishing"
SERVICES = ("pip ", "gh ", "curl ")
"""Programs that need the service itself."""


def commands(recipe: str, job: str) -> Iterator[str]:
    """Yield what a job of a recipe runs, without what needs the service."""
    text: dict[str, Any] = yaml.safe_load((RECIPES / recipe).read_text())
    steps = [step.get("run") for step in text["jobs"][job]["steps"]] if "jobs" in text else text[job]["script"]
    for step in filter(None, steps):
        if not step.startswith(SERVICES):
            yield step


@pytest.fixture
def project(tmp_path: Path, copy_sources: Callable[..., Path]) -> Iterator[Path]:
    copy_sources(tmp_path / "project", "models/digits.yaml", "examples/digits")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trainchart").write_text(f'#!/bin/sh\nexec {sys.executable} -m trainchart "$@"\n')
    (tmp_path / "bin" / "trainchart").chmod(0o755)
    with serve_registry(tmp_path / "registry") as host:
        push_image(host, "ml/digits", "1.0.0")
        spec = tmp_path / "project" / "models" / "digits.yaml"
        spec.write_text(spec.read_text().replace("registry.example.com/", f"{host}/", 1))
        yield tmp_path / "project"


def change(project: Path) -> None:
    spec = project / "models" / "digits.yaml"
    spec.write_text(spec.read_text().replace("description: ", "description: Now ", 1))


def run(project: Path, script: str) -> str:
    done = execute(project, script)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def execute(project: Path, script: str) -> subprocess.CompletedProcess[str]:
    path = f"{project.parent / 'bin'}:{os.environ['PATH']}"
    folders = {"REPOSITORY": str(project.parent / "repository"), "XDG_DATA_HOME": str(project.parent / "data")}
    environment = {**os.environ, "PATH": path, **folders}
    return subprocess.run(["bash", "-ec", script], cwd=project, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("recipe", ["github-actions.yaml", "gitlab-ci.yaml"])
def test_a_recipe_compares_and_releases(recipe: str, project: Path) -> None:
    for command in commands(recipe, "release"):
        run(project, command)
    assert (project.parent / "repository" / "digits-0.1.0.tgz").is_file()
    change(project)
    for command in commands(recipe, "compare"):
        run(project, command)
    assert "version: 0.1.0 → 0.1.1 (patch)" in (project / "comment.md").read_text()


def test_the_shell_recipes_can_be_run_again(project: Path) -> None:
    release, compare = (str(RECIPES / name) for name in ("release.sh", "compare.sh"))
    run(project, release)
    index = (project.parent / "repository" / "index.yaml").read_bytes()
    run(project, release)
    assert (project.parent / "repository" / "index.yaml").read_bytes() == index
    change(project)
    comment = run(project, compare)
    assert comment.startswith("```\ndigits since ")
    assert comment.endswith("version: 0.1.0 → 0.1.1 (patch)\n```\n")


def test_a_merge_request_whose_chart_is_not_fit_fails(project: Path) -> None:
    spec = project / "models" / "digits.yaml"
    spec.write_text(spec.read_text() + "nonsense: true\n")
    done = execute(project, str(RECIPES / "compare.sh"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "nonsense" in done.stderr
