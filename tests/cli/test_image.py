"""`trainchart image` as a user meets it: steps shown, exit codes, early ends. Building itself: tests/contract."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repositories.chart_servers import serve_registry
from tests.repositories.fake_docker import make_docker

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: 127.0.0.1:1/ml/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
"""
COMMAND = [sys.executable, "-m", "trainchart", "image"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("models", "code", "bin", "tmp"):
        (tmp_path / folder).mkdir()
    (tmp_path / "models" / "tiny.yaml").write_text(SPEC)
    (tmp_path / "code" / "train.py").write_text("print(1)\n")
    return tmp_path


def environment(project: Path) -> dict[str, str]:
    """Return one with no builder but those in bin/, and scratch folders in tmp/."""
    return {**os.environ, "PATH": str(project / "bin"), "TMPDIR": str(project / "tmp")}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments, "--format", "json"]
    return subprocess.run(command, cwd=project, env=environment(project), capture_output=True, text=True)


def test_dry_run_shows_only_the_steps_and_needs_no_builder(project: Path) -> None:
    (project / "pip.conf").write_text("[global]\nindex-url = https://me:secret@pypi.example.com\n")
    done = run(
        project, "push", "tiny", "--dry-run", "--builder", "podman", "--pip-config", "pip.conf", "--flavour", "gpu"
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["reference"].startswith("127.0.0.1:1/ml/tiny:in-")
    assert [step["name"] for step in told["steps"]] == ["build", "push"]
    build, push = (step["argv"] for step in told["steps"])
    assert {
        "--build-arg=TENSORFLOW_REQUIREMENTS=training-images/tensorflow/requirements/gpu.txt",
        f"--secret=id=pip-config,src={project}/pip.conf",
    } <= set(build)
    assert push[-1] == f"docker://{told['reference']}"
    assert "model/train.py" in told["files"]
    assert "secret@" not in done.stdout
    assert list((project / "tmp").iterdir()) == []


def test_no_builder_and_one_that_fails_have_exit_codes_and_hints(project: Path) -> None:
    missing = run(project, "build", "tiny")
    assert missing.returncode == 7
    assert json.loads(missing.stderr)["message"] == "none of docker, podman and buildah is on PATH"
    make_docker(project / "bin")
    (project / "bin" / "fails").write_text("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    failed = run(project, "build", "tiny")
    assert failed.returncode == 7
    assert "docker is installed, but does not run" in failed.stderr
    assert list((project / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--runtime", "BAD Name"), 8, "is not a valid image reference"),
        (("tiny", "--base-image", "a b"), 2, "'a b' is not a valid image name"),
        (("tiny", "--base-image=--rm"), 2, "'--rm' is not a valid image name"),
        (("tiny", "--pip-config", "a,b.conf"), 2, "a,b.conf contains a comma"),
        (("tiny", "--pip-config", "pipe"), 7, "pipe is neither a file nor a folder"),
        (("tiny", "--ca-bundle", "pipe"), 7, "pipe is neither a file nor a folder"),
    ],
)
def test_a_dry_run_refuses_what_a_builder_would(
    project: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (project / "a,b.conf").touch()
    os.mkfifo(project / "pipe")
    done = run(project, "build", "--dry-run", "--builder", "buildah", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.replace("│", "").split())


@pytest.mark.parametrize(
    ("command", "program", "ignored"),
    [
        ("python, train.py", "script train.py", "train.py"),
        ("python, ./pkg/../train.py", "script train.py", "*.py"),
        ("python, -m, pkg.mod", "module pkg.mod", "pkg"),
        ("python, -m, pkg.sub", "module pkg.sub", "**/__main__.py"),
    ],
)
def test_an_image_without_its_program_is_refused(project: Path, command: str, program: str, ignored: str) -> None:
    for file in ("pkg/mod.py", "pkg/sub/__main__.py"):
        (project / "code" / file).parent.mkdir(parents=True, exist_ok=True)
        (project / "code" / file).touch()
    spec, ignore = project / "models" / "tiny.yaml", project / "code" / ".dockerignore"
    spec.write_text(SPEC.replace("python, train.py", command))
    arguments = ("build", "tiny", "--dry-run", "--builder", "docker")
    assert run(project, *arguments).returncode == 0
    ignore.write_text(f"{ignored}\n")
    done = run(project, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    (problem,) = json.loads(done.stderr)["problems"]
    assert problem["message"] == f"code.command: {program} would not be in the image"
    assert problem["where"].startswith("models/tiny.yaml:6:")
    for other in ("python, -m, timeit", "sh, train.py", "python, /opt/train.py"):
        spec.write_text(SPEC.replace("python, train.py", other))
        assert run(project, *arguments).returncode == 0, other


def test_what_was_built_is_pushed_next_with_the_same_options(project: Path) -> None:
    make_docker(project / "bin")
    (project / "pip.conf").touch()
    for given, options in (
        (("tiny",), "tiny"),
        (("--runtime", "r.example.com/ml/runtime"), "--runtime r.example.com/ml/runtime"),
        (
            ("tiny", "--pip-config=pip.conf", "--builder=docker", "--flavour=gpu", "--tag=spec"),
            "tiny --tag spec --flavour gpu --builder docker --pip-config pip.conf",
        ),
    ):
        done = subprocess.run(
            [*COMMAND, "build", *given], cwd=project, env=environment(project), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.splitlines()[-1] == f"next: trainchart image push {options}"
        assert "next:" not in done.stdout


def test_a_tag_from_git_says_what_has_changed_of_the_code_alone(project: Path) -> None:
    code = project / "models" / "tiny.yaml", project / "code" / "train.py"
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Add a model"), ("tag", "v1")):
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        subprocess.run(["git", "-C", project, *identity, *arguments], check=True)
    for file, tag in zip((project / "README", *code), ("v1", "v1", "v1-dirty"), strict=True):
        with file.open("a") as opened:
            opened.write("# changed\n")
        done = subprocess.run(
            [*COMMAND, "build", "tiny", "--tag", "git", "--dry-run", "--builder", "buildah", "--format", "json"],
            cwd=project,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout)["reference"] == f"127.0.0.1:1/ml/tiny:{tag}"


@pytest.mark.parametrize("lacks", ["fails", "no-buildx"], ids=["a daemon that runs", "buildx"])
def test_docker_that_cannot_build_is_skipped(project: Path, lacks: str) -> None:
    make_docker(project / "bin")
    assert choose(project) == "docker"
    (project / "bin" / lacks).write_text("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    assert choose(project) == "docker", "it says why as soon as it is to build"
    buildah = project / "bin" / "buildah"
    buildah.write_text("#!/bin/sh\nexit 0\n")
    buildah.chmod(0o755)
    assert choose(project) == "buildah"
    assert choose(project, "--builder", "docker") == "docker"


def choose(project: Path, *options: str) -> str:
    """Return the builder that an image would be built with."""
    steps = json.loads(run(project, "build", "tiny", "--dry-run", *options).stdout)["steps"]
    return str(steps[0]["argv"][0])


def test_an_image_is_pushed_named_in_the_spec_and_looked_at(project: Path) -> None:
    make_docker(project / "bin")
    spec = project / "models" / "tiny.yaml"
    with serve_registry(project / "registry") as host:
        spec.write_text(SPEC.replace("127.0.0.1:1", host))
        pushed = tell(project, "push", "tiny", "--plain-http")
        reference, *rest = pushed.splitlines()
        assert reference.startswith(f"{host}/ml/tiny:in-")
        assert rest[0] == "  pushed"
        digest = rest[1].removeprefix("  digest ")
        assert f'digest: "{digest}"' in spec.read_text()
        assert rest[2] == "  models/tiny.yaml names it now; next: trainchart generate tiny"
        assert "nothing was pushed" in tell(project, "push", "tiny", "--plain-http")
        (project / "code" / "train.py").write_text("print(2)\n")
        looked = tell(project, "inspect", "tiny", "--plain-http")
    assert looked.startswith(f"{host}/ml/tiny@{digest}\n")
    assert "  platforms linux/amd64\n" in looked
    assert "  label     org.opencontainers.image.title=tiny\n" in looked
    assert looked.endswith("  inputs    changed since: code; trainchart image push tiny rebuilds it\n")


def tell(project: Path, *arguments: str) -> str:
    """Return what a command that succeeds prints as its result."""
    done = subprocess.run([*COMMAND, *arguments], cwd=project, env=environment(project), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def with_hangup() -> Iterator[None]:
    """Let what is started hear that its terminal is gone, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("with_hangup")
@pytest.mark.parametrize(
    ("action", "number", "code"),
    [
        ("build", signal.SIGINT, 130),
        ("build", signal.SIGTERM, 143),
        ("build", signal.SIGHUP, 129),
        ("push", signal.SIGTERM, 143),
    ],
)
def test_ctrl_c_and_a_stop_end_the_builder_and_leave_nothing(
    project: Path, action: str, number: signal.Signals, code: int
) -> None:
    make_docker(project / "bin")
    (project / "bin" / "hangs").touch()
    with serve_registry(project / "registry") as host:
        (project / "models" / "tiny.yaml").write_text(SPEC.replace("127.0.0.1:1", host))
        with subprocess.Popen(
            [*COMMAND, action, "tiny"], cwd=project, env=environment(project), stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert "hanging\n" in iter(process.stderr.readline, "")
            assert len(list((project / "tmp").iterdir())) == 1, "the build context"
            process.send_signal(number)
            assert process.wait(timeout=60) == code
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "bin" / "hangs").read_text()), 0)
    assert list((project / "tmp").iterdir()) == []
