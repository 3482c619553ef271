"""What an image is made of and called, decided with no builder in sight."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from trainchart.actions.image import ImageRequest, plan_image
from trainchart.actions.support.models import load_model
from trainchart.errors import PlanError
from trainchart.images.builders import BUILDERS, BuildPlace
from trainchart.images.choices import BuilderName, Flavour, TagChoice
from trainchart.images.inputs import ContextFile
from trainchart.images.plan import (
    PACKAGES,
    RUNTIME_DOCKERFILE,
    SBOM,
    SBOM_WRITER,
    TENSORFLOW_REQUIREMENTS,
    TRAINING_DOCKERFILE,
    ImageBuildPlan,
    ImageOptions,
    Origin,
    find_changed_parts,
    plan_runtime_image,
    plan_training_image,
)
from trainchart.resources import read_image_source
from trainchart.spec.model import ModelSpec

ROOT = Path(__file__).parents[3]
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: mnist
description: Digits.
sources: [https://example.com/git/mnist]
image: {repository: registry.example.com/ml/mnist, tag: "1.4.0"}
framework: {flavour: gpu}
code: {path: code, command: [python, train.py]}
strategy: single
"""
CODE = (ContextFile("train.py", b"print(1)"), ContextFile("requirements.txt", b"mlxtend==0.25.0\n"))
GPU_LIST = b"tensorflow[and-cuda]==2.21.0 --hash=sha256:1\nnumpy==2.4.6 --hash=sha256:2\n"
CPU_LIST = b"tensorflow-cpu==2.21.0 --hash=sha256:3\n"
SOURCES = (
    ContextFile(TRAINING_DOCKERFILE, b"FROM scratch"),
    ContextFile(RUNTIME_DOCKERFILE, b"FROM base"),
    ContextFile(SBOM_WRITER, b"print({})"),
    ContextFile(TENSORFLOW_REQUIREMENTS[Flavour.gpu], GPU_LIST),
    ContextFile(TENSORFLOW_REQUIREMENTS[Flavour.cpu], CPU_LIST),
    *(ContextFile(f"{folder}/__init__.py", part.encode()) for part, folder in PACKAGES.items()),
)
ORIGIN = Origin("4711abc-dirty", "v1.2-3-g4711abc-dirty", 1767225600)
Plan = Callable[..., ImageBuildPlan]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ModelSpec:
    path = tmp_path_factory.mktemp("spec") / "mnist.yaml"
    path.write_text(SPEC)
    return load_model(path).plan.spec


@pytest.fixture(scope="module")
def plan(spec: ModelSpec) -> Plan:
    def make(
        code: tuple[ContextFile, ...] = CODE, sources: tuple[ContextFile, ...] = SOURCES, **options: object
    ) -> ImageBuildPlan:
        return plan_training_image(spec, code, sources, ImageOptions(**options))  # type: ignore[arg-type]

    return make


def test_training_image_gets_packages_code_and_one_dockerfile(plan: Plan) -> None:
    made = plan()
    assert made.arguments == {
        "MODEL": "model",
        "TENSORFLOW_REQUIREMENTS": TENSORFLOW_REQUIREMENTS[Flavour.gpu],
    }
    paths = [file.path for file in made.files]
    assert paths == [
        TRAINING_DOCKERFILE,
        SBOM_WRITER,
        TENSORFLOW_REQUIREMENTS[Flavour.gpu],
        *(f"{folder}/__init__.py" for folder in PACKAGES.values()),
        "model/train.py",
        "model/requirements.txt",
    ]
    assert set(made.parts) == {*PACKAGES, "dockerfile", "sbom", "tensorflow", "code", "arguments", "platform"}
    assert plan(flavour=Flavour.cpu, base_image="debian@sha256:1").arguments == {
        **made.arguments,
        "TENSORFLOW_REQUIREMENTS": TENSORFLOW_REQUIREMENTS[Flavour.cpu],
        "BASE_IMAGE": "debian@sha256:1",
    }


def test_no_file_of_the_code_decides_what_a_build_reads(plan: Plan) -> None:
    """Builders look for lists of ignored files beside the Dockerfile and at the top of the context."""
    names = ("Dockerfile", "Dockerfile.dockerignore", "Dockerfile.containerignore", ".containerignore")
    hostile = tuple(ContextFile(name, b"*") for name in (*names, f"{TRAINING_DOCKERFILE}.dockerignore"))
    made = plan((*CODE, *hostile))
    ours = {file.path for file in plan().files}
    assert all(file.path.startswith("model/") for file in made.files if file.path not in ours)
    assert len(made.files) == len(ours) + len(hostile)


def test_code_without_requirements_gets_an_empty_list_and_a_note(plan: Plan) -> None:
    made = plan(code=CODE[:1])
    assert ContextFile("model/requirements.txt", b"") in made.files
    assert "no requirements.txt" in made.notes[0]
    assert "the run controller and the training library, and no other package" in made.notes[0]
    assert plan().notes == ()


def test_code_may_bring_another_tensorflow_if_the_spec_names_it(plan: Plan, spec: ModelSpec) -> None:
    own = ContextFile("requirements-tensorflow.txt", GPU_LIST.replace(b"2.21.0", b"2.20.0"))
    with pytest.raises(PlanError, match=r"requires TensorFlow 2\.21\.0; requirements-tensorflow\.txt has 2\.20\.0"):
        plan(code=(*CODE, own))
    older = spec.model_copy(update={"framework": spec.framework.model_copy(update={"tensorflow": "2.20.0"})})
    with pytest.raises(PlanError, match=r"requires TensorFlow 2\.20\.0; .*gpu\.txt has 2\.21\.0"):
        plan_training_image(older, CODE, SOURCES, ImageOptions())
    made = plan_training_image(older, (*CODE, own), SOURCES, ImageOptions())
    assert made.arguments["TENSORFLOW_REQUIREMENTS"] == "model/requirements-tensorflow.txt"
    paths = [file.path for file in made.files]
    assert "model/requirements-tensorflow.txt" in paths
    assert not {*TENSORFLOW_REQUIREMENTS.values()} & {*paths}


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-tensorflow.txt"])
def test_no_list_leads_to_another_file(plan: Plan, name: str) -> None:
    with pytest.raises(PlanError) as refusal:
        plan(code=(CODE[0], ContextFile(name, GPU_LIST + b"-c constraints.txt\n")))
    assert [problem.where for problem in refusal.value.problems] == [f"{name}:3"]


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-tensorflow.txt"])
def test_no_list_has_a_login(plan: Plan, name: str) -> None:
    with pytest.raises(PlanError) as refusal:
        plan(code=(CODE[0], ContextFile(name, GPU_LIST + b"-i https://me:secret@example.com/simple\n")))
    assert [problem.where for problem in refusal.value.problems] == [f"{name}:3"]


def test_models_packages_have_versions_and_are_not_the_images(plan: Plan) -> None:
    def listed(*lines: bytes) -> tuple[ContextFile, ...]:
        return (CODE[0], ContextFile("requirements.txt", b"\n".join(lines)))

    with pytest.raises(PlanError, match="does not pin every package exactly"):
        plan(code=listed(b"mlxtend"))
    assert plan(code=listed(b"numpy==2.4.6")).notes == ()
    with pytest.raises(PlanError, match="would replace some of those that TensorFlow needs"):
        plan(code=listed(b"numpy==2.4.5"))
    own = ContextFile("requirements-tensorflow.txt", GPU_LIST.replace(b"2.4.6", b"2.4.5"))
    assert plan(code=(*listed(b"numpy==2.4.5"), own)).notes == ()


@pytest.mark.parametrize("model", sorted((ROOT / "models").glob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("flavour", Flavour)
def test_nothing_is_wrong_with_the_examples(model: Path, flavour: Flavour) -> None:
    made = plan_image(ImageRequest(str(model), flavour=flavour), {}).plan
    assert made.notes == ()
    assert "model/requirements.txt" in {file.path for file in made.files}


def test_the_runtime_image_has_no_training_library_and_no_code() -> None:
    made = plan_runtime_image("r.example.com/ml/runtime", SOURCES, "0.1.0", ImageOptions())
    assert set(made.parts) == {"launcher", "controller", "runtime", "dockerfile", "sbom", "arguments", "platform"}
    assert made.dockerfile == RUNTIME_DOCKERFILE
    assert TRAINING_DOCKERFILE not in [file.path for file in made.files]
    with pytest.raises(PlanError):
        plan_runtime_image("r.example.com/ml/runtime", SOURCES, "0.1.0", ImageOptions(TagChoice.git))


def test_the_tag_changes_with_each_input_and_with_nothing_else(plan: Plan) -> None:
    first = plan()
    assert re.fullmatch(r"in-[0-9a-f]{16}", first.tag)
    assert plan(code=CODE[::-1], origin=ORIGIN).tag == first.tag, "neither order nor commit is an input"
    others = [
        plan(code=(*CODE, ContextFile("more.py", b""))),
        *(
            plan(sources=(*SOURCES[:i], dataclasses.replace(SOURCES[i], content=content), *SOURCES[i + 1 :]))
            for i, content in ((0, b"x"), (2, b"x"), (3, GPU_LIST.replace(b":2", b":4")), (5, b"x"), (8, b"x"))
        ),
        plan(flavour=Flavour.cpu),
        plan(base_image="debian:13"),
        plan(platform="linux/arm64"),
    ]
    assert len({made.tag for made in (first, *others)}) == 1 + len(others)
    unrelated = (SOURCES[0], dataclasses.replace(SOURCES[1], content=b"another runtime image"), *SOURCES[2:])
    assert plan(sources=unrelated).tag == first.tag


@pytest.mark.parametrize("path", [TRAINING_DOCKERFILE, RUNTIME_DOCKERFILE])
def test_the_last_layer_of_an_image_is_what_it_holds(path: str) -> None:
    instructions = read_image_source(path).decode().splitlines()
    assert any(line.endswith(SBOM_WRITER.rpartition("/")[2]) for line in instructions if line.startswith("COPY"))
    assert instructions[-1] == f"COPY --from=sbom --chown=0:0 /tmp/sbom.cdx.json /{SBOM}"


def test_a_tag_may_come_from_git_or_from_the_spec(plan: Plan) -> None:
    assert plan(tag=TagChoice.spec).reference == "registry.example.com/ml/mnist:1.4.0"
    assert plan(tag=TagChoice.git, origin=ORIGIN).tag == "v1.2-3-g4711abc-dirty"
    with pytest.raises(PlanError, match="git has no commit"):
        plan(tag=TagChoice.git)
    with pytest.raises(PlanError, match="is not a valid image tag"):
        plan(tag=TagChoice.git, origin=Origin(description="release/1.2"))


def test_labels_tell_what_an_image_is_and_what_it_was_made_of(plan: Plan) -> None:
    made = plan(origin=ORIGIN)
    told = {key.removeprefix("org.opencontainers.image."): value for key, value in made.labels.items() if "open" in key}
    assert told == {
        "title": "mnist",
        "description": "Digits.",
        "source": "https://example.com/git/mnist",
        "version": made.tag,
        "revision": "4711abc-dirty",
        "created": "2026-01-01T00:00:00Z",
    }
    assert not {key for key in plan().labels if key.endswith(("created", "revision"))}, "never the time of the build"
    assert find_changed_parts(made, made.labels) == ()
    assert find_changed_parts(plan(code=CODE[:1]), made.labels) == ("code",)
    assert find_changed_parts(made, {"org.opencontainers.image.title": "mnist"}) is None


@pytest.mark.parametrize("name", BuilderName)
def test_every_builder_is_told_the_same(plan: Plan, name: BuilderName) -> None:
    made = plan(base_image="debian:13", platform="linux/arm64", origin=ORIGIN)
    place = BuildPlace("/tmp/context", {"pip-config": "/home/me/pip.conf"})
    program, *words = BUILDERS[name].build_step(made, place).argv
    assert program == name
    assert words[-1] == "/tmp/context"
    assert {
        f"--file=/tmp/context/{TRAINING_DOCKERFILE}",
        "--platform=linux/arm64",
        "--build-arg=BASE_IMAGE=debian:13",
        "--label=org.opencontainers.image.title=mnist",
        "--secret=id=pip-config,src=/home/me/pip.conf",
        f"--tag={made.reference}",
    } <= set(words)
    assert BUILDERS[name].push_step(made.reference, plain_http=False).argv[:2] == (name, "push")


def test_plain_http_is_said_to_those_who_ask_for_it() -> None:
    argv = BUILDERS[BuilderName.buildah].push_step("127.0.0.1:5000/x:1", plain_http=True).argv
    assert argv == ("buildah", "push", "--tls-verify=false", "127.0.0.1:5000/x:1", "docker://127.0.0.1:5000/x:1")
