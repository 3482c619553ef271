"""`publish`, `release` and `verify --images` ask for a chart's images, here of a real registry with a password."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.repositories.chart_images import push_image
from tests.repositories.chart_servers import PASSWORD, USER, serve_registry
from trainchart.archive.read import parse_archive


@dataclass(frozen=True)
class Project:
    """A project with the model digits, and a registry that its image may be in."""

    folder: Path
    host: str

    def name_image(self, name: str, tag: str) -> None:
        """Write another image into the spec."""
        spec = self.folder / "models" / "digits.yaml"
        image = f'image:\n  repository: {self.host}/ml/{name}\n  tag: "{tag}"\n'
        spec.write_text(re.sub(r"^image:\n(?:  .*\n)+", image, spec.read_text(), flags=re.MULTILINE))

    def run(self, *arguments: str | Path, is_known: bool = True) -> tuple[int, Any]:
        """Run a command; returns its exit code, and what it printed as JSON."""
        config = self.folder / ("docker" if is_known else "nobody")
        environment = {**os.environ, "HOME": str(self.folder), "DOCKER_CONFIG": str(config)}
        argv = [sys.executable, "-m", "trainchart", *map(str, arguments), "--format", "json"]
        done = subprocess.run(argv, cwd=self.folder, capture_output=True, text=True, env=environment)
        assert "Traceback" not in done.stderr, done.stderr
        told = done.stdout or done.stderr
        return done.returncode, json.JSONDecoder().raw_decode(told[told.index("{") :])[0]

    def release(self, *arguments: str, is_known: bool = True) -> tuple[int, Any]:
        return self.run("release", "digits", "--to", "repository", *arguments, is_known=is_known)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_registry(tmp_path_factory.mktemp("registry") / "data", with_password=True) as host:
        yield host


@pytest.fixture
def project(registry: str, tmp_path: Path, copy_sources: Callable[..., Path]) -> Project:
    copy_sources(tmp_path, "models/digits.yaml", "examples/digits")
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "config.json").write_text(json.dumps({"auths": {registry: {"auth": login}}}))
    return Project(tmp_path, registry)


def test_a_chart_is_released_once_its_image_is_there(project: Project) -> None:
    project.name_image("late", "1.0.0")
    code, told = project.release()
    assert (code, told["error"]) == (8, "ImageNotFound")
    (problem,) = told["problems"]
    assert problem["where"] == f"{project.host}/ml/late:1.0.0"
    assert "--skip-image-check" in told["hint"]
    assert not (project.folder / "repository").exists()
    digest = push_image(project.host, "ml/late", "1.0.0")
    code, told = project.release()
    assert (code, told["isNew"], told["imageCheck"]) == (0, True, "found")
    chart = parse_archive((project.folder / "repository" / "digits-0.1.0.tgz").read_bytes()).files["Chart.yaml"]
    assert f'trainchart/images: "{project.host}/ml/late:1.0.0@{digest}"' in chart.decode()
    verify = ("verify", "repository/digits-0.1.0.tgz", "--images")
    code, told = project.run(*verify)
    assert (code, told["images"]) == (0, [{"image": f"{project.host}/ml/late:1.0.0@{digest}", "digest": digest}])
    code, told = project.run(*verify, is_known=False)
    assert (code, told["error"]) == (8, "RepositoryUnauthorized")
    assert "could not be queried" in told["message"]


def test_publish_asks_before_anything_is_there_and_not_again(project: Project) -> None:
    project.name_image("never", "1.0.0")
    code, told = project.run("generate", "digits")
    assert code == 0
    publish = ("publish", "charts/digits", "--to", f"oci://{project.host}/charts", "--plain-http")
    code, told = project.run(*publish)
    assert (code, told["error"]) == (8, "ImageNotFound")
    code, told = project.run(*publish, "--skip-image-check")
    assert (code, told["isNew"], told["imageCheck"]) == (0, True, "skipped")
    code, told = project.run(*publish)
    assert (code, told["isNew"], told["imageCheck"]) == (0, False, "not needed")
    code, told = project.run("verify", f"oci://{project.host}/charts/digits:0.1.0", "--plain-http")
    assert (code, told["hasProvenance"], told["isSigned"]) == (0, True, False)
    code, told = project.run("verify", "charts/digits", "--images")
    assert (code, told["error"], told["problems"][0]["message"]) == (6, "ChecksFailed", "is not there")


def test_images_of_a_first_install_are_asked_for_too(project: Project) -> None:
    push_image(project.host, "ml/always", "1.0.0")
    chart = project.folder / "plain"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: plain\nversion: 1.0.0\n")
    (chart / "templates" / "pods.yaml").write_text(
        '{{ define "pod" }}\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n'
        f"spec: {{containers: [{{name: a, image: {project.host}/ml/{{{{ . }}}}}}]}}\n{{{{ end }}}}"
        '{{ include "pod" "always:1.0.0" }}---\n'
        '{{ if .Release.IsInstall }}{{ include "pod" "first:1.0.0" }}{{ end }}'
    )
    publish = ("publish", "plain", "--to", "repository")
    code, told = project.run(*publish)
    assert (code, told["error"]) == (8, "ImageNotFound")
    assert [problem["where"] for problem in told["problems"]] == [f"{project.host}/ml/first:1.0.0"]
    push_image(project.host, "ml/first", "1.0.0")
    assert project.run(*publish)[0] == 0
