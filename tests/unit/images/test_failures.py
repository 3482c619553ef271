"""The last words of builders, as they say them, and the errors that users get."""

from __future__ import annotations

import pytest

from trainchart.errors import RepositoryForbidden, RepositoryUnreachable, ToolError
from trainchart.images.builders import Step
from trainchart.images.failures import explain_failure


@pytest.mark.parametrize(
    ("step", "said", "kind", "message"),
    [
        (
            "docker build",
            "ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            ToolError,
            "docker is installed, but does not run",
        ),
        ("docker build", "docker: 'buildx' is not a docker command.", ToolError, "docker has no buildx"),
        ("docker build", "unknown flag: --load\n\nUsage:  docker [OPTIONS] COMMAND", ToolError, "docker has no buildx"),
        (
            "docker build",
            "ERROR: failed to solve: nobody/base:1: failed to resolve source metadata for docker.io/nobody/base:1: "
            "pull access denied, repository does not exist or may require authorization",
            ToolError,
            "docker cannot get the base image",
        ),
        (
            "buildah build",
            "error: creating build container: initializing source docker://r.example.com/b:1: "
            'pinging container registry r.example.com: Get "https://r.example.com/v2/": '
            "dial tcp: lookup r.example.com: no such host",
            ToolError,
            "buildah cannot get the base image",
        ),
        (
            "podman build",
            "Error: writing blob: adding layer: open /var/lib/x: no space left on device",
            ToolError,
            "podman: the disk is full",
        ),
        ("docker push", "denied: requested access to the resource is denied", RepositoryForbidden, "refuses the image"),
        (
            "buildah push",
            "Error: trying to reuse blob at destination: unable to retrieve auth token: invalid username/password: "
            "unauthorized: authentication required",
            RepositoryForbidden,
            "refuses the image",
        ),
        (
            "buildah push",
            'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused',
            RepositoryUnreachable,
            "cannot be reached",
        ),
        ("docker build", "ERROR: No matching distribution found for numpy==99", ToolError, "ended with 1: ERROR: No m"),
        ("docker push", "something new", ToolError, "cannot be pushed: something new"),
    ],
)
def test_the_last_words_become_an_error_that_helps(step: str, said: str, kind: type, message: str) -> None:
    program, name = step.split()
    error = explain_failure(Step(name, (program, name)), 1, ("step 1\n", f"{said}\n"))
    assert type(error) is kind
    assert message in error.message
    assert error.hint


PULLED = ("Trying to pull docker.io/library/python:3.12-slim...", "Getting image source signatures")
PIP_FAILS = (
    "WARNING: Retrying after connection broken by 'NewConnectionError: [Errno 111] Connection refused'",
    "ERROR: HTTP error 403 while getting https://pypi.example.com/simple/numpy/",
    "ERROR: No matching distribution found for numpy==2.4.6",
)


@pytest.mark.parametrize(
    ("program", "end"),
    [
        ("podman", 'Error: building at STEP "RUN pip install": while running runtime: exit status 1'),
        ("buildah", 'error building at STEP "RUN pip install": error while running runtime: exit status 1'),
    ],
)
def test_a_base_image_that_was_pulled_is_not_to_blame_for_pip(program: str, end: str) -> None:
    error = explain_failure(Step("build", (program, "build")), 1, (*PULLED, *PIP_FAILS, end))
    assert error.message == f"{program} build ended with 1: {end}"


@pytest.mark.parametrize(
    ("program", "refusal", "advice"),
    [
        (
            "docker",
            "ERROR: failed to solve: python:0: failed to resolve source metadata for docker.io/library/python:0: "
            "docker.io/library/python:0: not found",
            ("View build details: docker-desktop://dashboard/build/default/default/x",),
        ),
        (
            "podman",
            "Error: creating build container: initializing source docker://nobody/base:1: reading manifest 1 in "
            "docker.io/nobody/base: requested access to the resource is denied",
            (),
        ),
    ],
)
def test_unavailable_base_image_is_named_despite_other_output(
    program: str, refusal: str, advice: tuple[str, ...]
) -> None:
    error = explain_failure(Step("build", (program, "build")), 1, (*PULLED, f"{refusal}\n", *advice))
    assert error.message == f"{program} cannot get the base image: {refusal}"


@pytest.mark.parametrize(
    "said",
    [
        "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer'))",
        "Could not fetch URL https://pypi.org/simple/numpy/: certificate verify failed: certificate has expired",
        "error: self-signed certificate in certificate chain",
    ],
)
def test_index_that_pip_does_not_trust_gets_a_hint(said: str) -> None:
    step = Step("build", ("podman", "build"))
    end = 'Error: building at STEP "RUN pip install": while running runtime: exit status 1'
    assert "--ca-bundle" in explain_failure(step, 1, (*PULLED, said, *PIP_FAILS, end)).hint
    assert explain_failure(step, 1, (*PULLED, *PIP_FAILS, end)).hint == "its output is above"


def test_silence_is_said_too() -> None:
    assert "it printed nothing" in explain_failure(Step("build", ("docker",)), 125, ()).message


def test_placeholder_registry_is_named() -> None:
    said = 'Get "https://registry.example.com/v2/": dial tcp: lookup registry.example.com: no such host'
    error = explain_failure(Step("push", ("docker", "push")), 1, (said,))
    assert "is a placeholder: replace it with your own registry (in image.repository" in error.hint
