"""The programs that build images, as command lines: docker with buildx, podman and buildah. Pure.

All three take a Dockerfile and the same words for most of it. What differs is here; running them is in io/program.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from trainchart.images.choices import BuilderName
from trainchart.images.plan import ImageBuildPlan


@dataclass(frozen=True)
class BuildPlace:
    """Where a build finds its files."""

    context: str
    """Folder with the build context."""
    secrets: Mapping[str, str]
    """Build secret to the absolute path of its file, which no layer holds."""


@dataclass(frozen=True)
class Step:
    """One command to run."""

    name: str
    argv: tuple[str, ...]


class Builder(Protocol):
    """A program that builds an image from a Dockerfile, keeps it on this machine, and pushes it."""

    @property
    def program(self) -> BuilderName:
        """Its name, which is that of the command."""
        ...

    @property
    def probes(self) -> tuple[tuple[str, ...], ...]:
        """Commands that all succeed where it can build, and change nothing."""
        ...

    def build_step(self, plan: ImageBuildPlan, place: BuildPlace) -> Step:
        """Return the command that builds the image; its layers stay on this machine for the next build."""
        ...

    def push_step(self, reference: str, *, plain_http: bool) -> Step:
        """Return the command that pushes the image, with the login that the user's docker or podman has."""
        ...


class Docker:
    """docker, whose buildx knows build secrets."""

    program = BuilderName.docker
    probes = (("docker", "version"), ("docker", "buildx", "version"))
    """The first one asks the daemon; the second one is a plugin, which need not be there."""

    def build_step(self, plan: ImageBuildPlan, place: BuildPlace) -> Step:
        # Without --load an image stays in buildx's cache; a provenance record would hold the time of the build.
        argv = ("docker", "buildx", "build", "--load", "--provenance=false", *_words(plan, place))
        return Step("build", argv)

    def push_step(self, reference: str, *, plain_http: bool) -> Step:
        # The daemon's own settings say which registries it speaks to without encryption; loopback is one.
        del plain_http
        return Step("push", ("docker", "push", reference))


@dataclass(frozen=True)
class Containers:
    """podman and buildah, which share code and words."""

    program: BuilderName

    @property
    def probes(self) -> tuple[tuple[str, ...], ...]:
        # podman's asks its machine, where it needs one.
        return ((self.program, "version"),)

    def build_step(self, plan: ImageBuildPlan, place: BuildPlace) -> Step:
        return Step("build", (self.program, "build", "--layers", "--format=oci", *_words(plan, place)))

    def push_step(self, reference: str, *, plain_http: bool) -> Step:
        tls = ("--tls-verify=false",) if plain_http else ()
        return Step("push", (self.program, "push", *tls, reference, f"docker://{reference}"))


BUILDERS: Mapping[BuilderName, Builder] = {
    BuilderName.docker: Docker(),
    BuilderName.podman: Containers(BuilderName.podman),
    BuilderName.buildah: Containers(BuilderName.buildah),
}


def _words(plan: ImageBuildPlan, place: BuildPlace) -> Iterator[str]:
    yield f"--file={place.context}/{plan.dockerfile}"
    # Said even where it is this machine's: docker may speak to a daemon on another.
    yield f"--platform={plan.platform}"
    for name, value in sorted(plan.arguments.items()):
        yield f"--build-arg={name}={value}"
    for name, value in sorted(plan.labels.items()):
        yield f"--label={name}={value}"
    for name, path in sorted(place.secrets.items()):
        yield f"--secret=id={name},src={path}"
    yield f"--tag={plan.reference}"
    yield place.context
