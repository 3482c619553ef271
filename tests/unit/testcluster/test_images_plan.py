"""Which keys and commands an image build gets, decided from texts alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest

from tests.cluster.testcluster.images import plan

DOCKERFILE = """# first comment
ARG BASE_IMAGE
FROM ${BASE_IMAGE} AS tensorflow
COPY training-images/tensorflow/requirements/cpu.txt /requirements.txt
RUN pip install --requirement /requirements.txt

FROM tensorflow AS model
COPY examples/mnist /app
"""
SOURCES = (
    plan.SourceFile("examples/mnist/train.py", b"print(1)\n"),
    plan.SourceFile("training-images/launcher/main.py", b"print(2)\n"),
    plan.SourceFile(plan.REQUIREMENTS, b"tensorflow-cpu==2.21.0\n"),
)
MIRROR = "http://deb.debian.org/debian"
OTHERS = ("registry.trainchart.test/cluster/pause:1",)
KEYS = plan.resolve_keys(MIRROR, DOCKERFILE, SOURCES, OTHERS)
BUILD = plan.DockerfileBuild(
    dockerfile=PurePosixPath("/build/Dockerfile"),
    context=PurePosixPath("/build/context"),
    base_image="registry.trainchart.test/cluster/base:1",
    reference="registry.trainchart.test/ml/mnist:1.0.0",
    secrets=plan.BuildSecrets(PurePosixPath("/build/pip.conf"), PurePosixPath("/etc/ssl/bundle.crt")),
)


def test_a_change_of_code_rebuilds_the_set_alone() -> None:
    changed = (dataclasses.replace(SOURCES[0], content=b"print(3)\n"), *SOURCES[1:])

    keys = plan.resolve_keys(MIRROR, DOCKERFILE, changed, OTHERS)

    assert (keys.base, keys.tensorflow) == (KEYS.base, KEYS.tensorflow)
    assert keys.image_set != KEYS.image_set


def test_a_change_of_a_later_stage_keeps_the_tensorflow_layer() -> None:
    keys = plan.resolve_keys(MIRROR, DOCKERFILE.replace("/app", "/code"), SOURCES, OTHERS)

    assert keys.tensorflow == KEYS.tensorflow
    assert keys.image_set != KEYS.image_set


def test_a_change_of_the_first_stage_keeps_the_base_alone() -> None:
    keys = plan.resolve_keys(MIRROR, DOCKERFILE.replace("pip install", "pip install --quiet"), SOURCES, OTHERS)

    assert keys.base == KEYS.base
    assert keys.tensorflow != KEYS.tensorflow
    assert keys.image_set != KEYS.image_set


def test_another_list_of_packages_rebuilds_the_tensorflow_layer() -> None:
    changed = (*SOURCES[:2], dataclasses.replace(SOURCES[2], content=b"tensorflow-cpu==2.22.0\n"))

    keys = plan.resolve_keys(MIRROR, DOCKERFILE, changed, OTHERS)

    assert keys.base == KEYS.base
    assert keys.tensorflow != KEYS.tensorflow
    assert keys.image_set != KEYS.image_set


@pytest.mark.parametrize(
    ("mirror", "sources", "others"),
    [
        ("http://mirror.example.com/debian", SOURCES, OTHERS),
        (MIRROR, SOURCES[:1], OTHERS),
        (MIRROR, (dataclasses.replace(SOURCES[0], path="examples/mnist/other.py"), *SOURCES[1:]), OTHERS),
        (MIRROR, SOURCES, ("registry.trainchart.test/cluster/pause:2",)),
    ],
)
def test_every_input_is_part_of_the_set(
    mirror: str, sources: tuple[plan.SourceFile, ...], others: tuple[str, ...]
) -> None:
    assert plan.resolve_keys(mirror, DOCKERFILE, sources, others).image_set != KEYS.image_set


def test_comments_and_file_order_rebuild_nothing_slow() -> None:
    commented = DOCKERFILE.replace("# first comment", "# another comment")

    assert plan.resolve_keys(MIRROR, commented, SOURCES, OTHERS).tensorflow == KEYS.tensorflow
    assert plan.resolve_keys(MIRROR, DOCKERFILE, SOURCES[::-1], OTHERS) == KEYS


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert plan.content_key("ab", "c") != plan.content_key("a", "bc")


def test_first_stage_installs_listed_tensorflow_and_no_model() -> None:
    dockerfile = Path(__file__).parents[3] / "training-images" / "tensorflow" / "Dockerfile"

    stage = plan.first_stage(dockerfile.read_text())

    assert f"ARG TENSORFLOW_REQUIREMENTS={plan.REQUIREMENTS}" in stage
    assert "pip install" in stage
    assert "ARG MODEL" not in stage
    copied = [line for line in stage.splitlines() if line.startswith(("COPY", "ADD"))]
    assert copied == ["COPY ${TENSORFLOW_REQUIREMENTS} /opt/trainchart/tensorflow.txt"], "all of it is in the key"


def test_an_image_keeps_its_name_but_for_the_registry() -> None:
    reference = plan.cluster_reference("registry.example.com/ml/mnist", "1.0.0")

    assert reference == "registry.trainchart.test/ml/mnist:1.0.0"


def test_a_build_sees_the_secrets_and_names_its_base() -> None:
    argv = plan.build_argv(dataclasses.replace(BUILD, model="examples/mnist"))

    assert "--secret=id=pip-config,src=/build/pip.conf" in argv
    assert "--secret=id=ca-bundle,src=/etc/ssl/bundle.crt" in argv
    assert "--build-arg=BASE_IMAGE=registry.trainchart.test/cluster/base:1" in argv
    assert "--build-arg=MODEL=examples/mnist" in argv
    assert not [argument for argument in argv if argument.startswith("--target")]
    assert argv[-2:] == ("--tag=registry.trainchart.test/ml/mnist:1.0.0", "/build/context")


def test_a_target_is_built_without_a_model() -> None:
    argv = plan.build_argv(dataclasses.replace(BUILD, target="tensorflow"))

    assert "--target=tensorflow" in argv
    assert not [argument for argument in argv if "MODEL" in argument]


def test_tool_ends_with_its_parent_and_takes_its_children() -> None:
    argv = plan.isolated_argv(("buildah", "version"))

    assert argv[-2:] == ("buildah", "version")
    assert argv[:3] == ("setpriv", "--pdeathsig", "KILL")
    assert "--kill-child=KILL" in argv
    assert "--pid" in argv


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "no-input = true"),
        ({"PIP_INDEX_URL": "https://pypi.example.com/simple"}, "index-url = https://pypi.example.com/simple"),
        ({"PIP_DEFAULT_TIMEOUT": "180"}, "timeout = 180"),
    ],
)
def test_pip_uses_this_machines_index(environment: dict[str, str], line: str) -> None:
    lines = plan.pip_config(environment).splitlines()

    assert lines[0] == "[global]"
    assert line in lines
    assert not [entry for entry in lines if entry.endswith("= ")]
