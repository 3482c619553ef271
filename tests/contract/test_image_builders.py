"""One contract for builders: what is planned is what the registry has, once. Real buildah, and a stand-in for docker.

The images have no TensorFlow and run nothing: a Dockerfile of three lines stands for the real one, which the test
cluster builds.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repositories.chart_servers import PASSWORD, USER, serve_registry
from tests.repositories.fake_docker import make_docker
from trainchart.actions.generate import generate_charts
from trainchart.actions.image import (
    BuildTool,
    ImageRequest,
    PlannedImage,
    PushedImage,
    inspect_image,
    plan_image,
    push_image,
    read_sbom,
)
from trainchart.actions.support.models import load_model, render_model
from trainchart.archive.lock import LOCK_FILE, parse_lock
from trainchart.errors import ImageNotFound, PublishError, RepositoryUnauthorized, ToolError, VersionConflict
from trainchart.images.builders import BUILDERS, Builder, BuildPlace, Step
from trainchart.images.choices import BuilderName, TagChoice
from trainchart.images.inputs import ContextFile
from trainchart.images.plan import SBOM, ImageBuildPlan

SPEC = """\
# Digits, by hand.
apiVersion: trainchart/v1
kind: Model
name: digits
description: Handwritten digits.
image:
  repository: {host}/ml/digits  # ours
  tag: "1.4.0"
code: {{path: code, command: [python, train.py]}}
strategy: single
"""
DOCKERFILE = b"FROM scratch\nARG MODEL\nCOPY ${MODEL} /app\n"
HELD = '{"bomFormat": "CycloneDX"}\n'
"""Stands for what a real image says that it holds; tests/unit/images/test_write_sbom.py writes one."""


@dataclass(frozen=True)
class Bench:
    """A builder, a registry, and a project in a folder of its own."""

    project: Path
    registry: str
    builder: BuilderName
    environment: Mapping[str, str]
    lines: list[str]

    @property
    def spec(self) -> Path:
        return self.project / "models" / "digits.yaml"

    def write_spec(self, text: str = SPEC) -> None:
        self.spec.write_text(text.format(host=self.registry))

    def plan(self, tag: TagChoice = TagChoice.content, dockerfile: bytes = DOCKERFILE) -> PlannedImage:
        request = ImageRequest(str(self.spec), tag=tag, plain_http=True)
        image = plan_image(request, self.environment)
        files = (ContextFile(image.plan.dockerfile, dockerfile), *image.plan.files[1:])
        return dataclasses.replace(image, plan=dataclasses.replace(image.plan, files=files))

    def tool(self) -> BuildTool:
        return BuildTool(BUILDERS[self.builder], {}, self.environment, self.lines.append)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_registry(tmp_path_factory.mktemp("registry") / "data") as host:
        yield host


@pytest.fixture(params=[BuilderName.buildah, BuilderName.docker])
def bench(request: pytest.FixtureRequest, registry: str, tmp_path: Path) -> Bench:
    # Each of its own, since a tag of the shared registry is there for good.
    host = f"{registry}/{request.param}-{request.node.originalname.replace('_', '-')}"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path), "SOURCE_DATE_EPOCH": "1767225600"}
    if request.param is BuilderName.docker:
        make_docker(tmp_path)
    elif shutil.which(request.param) is None:
        pytest.skip("there is no buildah; apt-get install it")
    else:
        environment |= _make_storage(tmp_path)
    for folder in ("models", "code"):
        (tmp_path / folder).mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trained')\n")
    bench = Bench(tmp_path, host, request.param, environment, [])
    bench.write_spec()
    return bench


def _make_storage(folder: Path) -> dict[str, str]:
    """Give buildah a storage of the test's own, which needs neither mounts nor containers."""
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
    )
    return {
        "BUILDAH_ISOLATION": "chroot",
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "TMPDIR": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
    }


def test_what_is_pushed_is_what_was_planned_and_pushed_once(bench: Bench) -> None:
    image = bench.plan()

    first = push_image(image, bench.tool(), update_spec=True)

    assert (first.reference, first.is_new, first.is_in_spec) == (image.plan.reference, True, True)
    assert bench.lines, "the builder's output is shown"
    spec = bench.spec.read_text()
    changed = SPEC.format(host=bench.registry).replace('"1.4.0"', f'"{image.plan.tag}"\n  digest: "{first.digest}"')
    assert spec == changed, "nothing but tag and digest"
    lock = parse_lock(render_model(load_model(bench.spec)).files[LOCK_FILE].decode())
    assert lock.image == f"{first.reference}@{first.digest}"

    bench.lines.clear()
    again = push_image(bench.plan(), bench.tool(), update_spec=True)
    assert (again.digest, again.is_new) == (first.digest, False)
    assert (bench.lines, bench.spec.read_text()) == ([], spec), "nothing was built, nothing written"

    found = inspect_image(bench.plan(), bench.environment)
    assert (found.image.digest, found.image.platforms, found.changed) == (first.digest, ("linux/amd64",), ())
    assert found.image.labels.items() >= image.plan.labels.items()
    assert found.image.size > 100
    (bench.project / "code" / "train.py").write_text("print('trained better')\n")
    assert inspect_image(bench.plan(), bench.environment).changed == ("code",)
    assert push_image(bench.plan(), bench.tool(), update_spec=False).digest != first.digest
    assert bench.spec.read_text() == spec


def test_project_of_code_only_keeps_its_image_until_code_changes(bench: Bench) -> None:
    bench.write_spec(SPEC.replace("path: code", "path: ."))
    (bench.project / "train.py").write_text("print('trained')\n")
    (bench.project / ".dockerignore").write_text("*\n!models\n!train.py\n!charts\n")
    first = push_image(bench.plan(), bench.tool(), update_spec=True)
    generate_charts((bench.spec,), bench.project / "charts", overwrite=False)

    again = push_image(bench.plan(), bench.tool(), update_spec=True)

    assert (again.digest, again.is_new) == (first.digest, False)
    (bench.project / "train.py").write_text("print('trained better')\n")
    assert inspect_image(bench.plan(), bench.environment).changed == ("code",)


def test_an_image_for_another_platform_has_another_tag(bench: Bench) -> None:
    here = push_image(bench.plan(), bench.tool(), update_spec=True)
    arm = dataclasses.replace(bench, environment={**bench.environment, "DOCKER_DEFAULT_PLATFORM": "linux/arm64"})

    assert inspect_image(arm.plan(), arm.environment).changed == (), "whoever looks at it, and from which machine"
    there = push_image(arm.plan(), arm.tool(), update_spec=True)

    assert there.is_new
    assert there.reference != here.reference
    found = inspect_image(arm.plan(), arm.environment)
    assert [name.split("/")[1] for name in found.image.platforms] == ["arm64"]
    asked = dataclasses.replace(
        arm.plan(), request=ImageRequest(str(arm.spec), platform="linux/arm64", plain_http=True)
    )
    assert inspect_image(asked, arm.environment).changed == ()


@dataclass(frozen=True)
class _Slow:
    """A builder that is overtaken: by an image that another machine pushes while this one builds."""

    builder: Builder
    overtake: Callable[[], object]

    @property
    def program(self) -> BuilderName:
        return self.builder.program

    def build_step(self, plan: ImageBuildPlan, place: BuildPlace) -> Step:
        self.overtake()
        return self.builder.build_step(plan, place)

    def push_step(self, reference: str, *, plain_http: bool) -> Step:
        return self.builder.push_step(reference, plain_http=plain_http)


def test_of_two_that_build_the_same_the_first_one_pushed_counts(bench: Bench) -> None:
    first: list[PushedImage] = []
    image, tool = bench.plan(), bench.tool()
    slow = _Slow(tool.builder, lambda: first.append(push_image(image, tool, update_spec=False)))

    second = push_image(image, dataclasses.replace(tool, builder=slow), update_spec=True)

    assert (first[0].is_new, second.is_new) == (True, False)
    assert second.digest == first[0].digest
    assert first[0].digest in bench.spec.read_text()


def test_build_whose_tag_is_taken_meanwhile_reports_a_conflict(bench: Bench) -> None:
    image, tool = bench.plan(TagChoice.spec), bench.tool()
    (bench.project / "code" / "train.py").write_text("print('of another branch')\n")
    other = bench.plan(TagChoice.spec)
    slow = _Slow(tool.builder, lambda: push_image(other, tool, update_spec=False))

    with pytest.raises(VersionConflict):
        push_image(image, dataclasses.replace(tool, builder=slow), update_spec=True)

    assert bench.spec.read_text() == SPEC.format(host=bench.registry)


def test_a_tag_of_other_content_is_not_replaced(bench: Bench) -> None:
    push_image(bench.plan(TagChoice.spec), bench.tool(), update_spec=False)
    (bench.project / "code" / "train.py").write_text("print('another')\n")
    with pytest.raises(VersionConflict) as refusal:
        push_image(bench.plan(TagChoice.spec), bench.tool(), update_spec=True)
    assert "its code differs from what is here" in refusal.value.problems[0].message
    assert bench.spec.read_text() == SPEC.format(host=bench.registry)


def test_what_is_not_there_is_said(bench: Bench) -> None:
    with pytest.raises(ImageNotFound, match=r"has no .*/ml/digits:1\.4\.0"):
        inspect_image(bench.plan(), bench.environment)


@pytest.mark.parametrize("bench", [BuilderName.buildah], indirect=True)
def test_what_an_image_holds_is_read_from_its_last_layers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.project / "code" / "sbom.json").write_text(HELD)
    written = DOCKERFILE + f"COPY ${{MODEL}}/sbom.json /{SBOM}\nCOPY ${{MODEL}}/train.py /more/\n".encode()
    push_image(bench.plan(dockerfile=written), bench.tool(), update_spec=True)
    assert read_sbom(bench.plan(), bench.environment) == HELD
    monkeypatch.setattr("trainchart.publish.io.image.LAYER_LIMIT", 1)
    with pytest.raises(PublishError, match=f"does not say what it contains: it has no /{SBOM}"):
        read_sbom(bench.plan(), bench.environment)


def test_an_image_that_does_not_say_what_it_holds_is_named(bench: Bench) -> None:
    with pytest.raises(ImageNotFound):
        read_sbom(bench.plan(), bench.environment)
    push_image(bench.plan(), bench.tool(), update_spec=True)
    with pytest.raises(PublishError, match="does not say what it contains"):
        read_sbom(bench.plan(), bench.environment)


@pytest.mark.parametrize("bench", [BuilderName.buildah], indirect=True)
@pytest.mark.parametrize("kept", [".docker/config.json", "containers/auth.json"], ids=["docker", "podman"])
def test_the_login_of_docker_or_podman_is_the_builders_and_ours(bench: Bench, kept: str, tmp_path: Path) -> None:
    with serve_registry(tmp_path / "private", with_password=True) as host:
        bench = dataclasses.replace(bench, registry=host)
        bench.write_spec()
        with pytest.raises(RepositoryUnauthorized):
            push_image(bench.plan(), bench.tool(), update_spec=True)
        auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        (tmp_path / kept).parent.mkdir()
        (tmp_path / kept).write_text(json.dumps({"auths": {host: {"auth": auth}}}))
        assert push_image(bench.plan(), bench.tool(), update_spec=True).is_new


def test_the_context_is_gone_after_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = bench.project / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    image = bench.plan()
    broken = (ContextFile(image.plan.dockerfile, b"FROM scratch\nCOPY nothing /app\n"), *image.plan.files[1:])
    image = dataclasses.replace(image, plan=dataclasses.replace(image.plan, files=broken))
    if bench.builder is BuilderName.docker:
        (bench.project / "fails").write_text("COPY failed: no source files were specified")
    with pytest.raises(ToolError, match="build ended with"):
        push_image(image, bench.tool(), update_spec=True)
    assert list(scratch.iterdir()) == []
    assert bench.spec.read_text() == SPEC.format(host=bench.registry)
