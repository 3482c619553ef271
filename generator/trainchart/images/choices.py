"""What a user chooses by name about an image, its platform too. Light, so that `trainchart --help` is."""

from __future__ import annotations

import enum
import re

from trainchart.errors import UsageError


class TagChoice(enum.StrEnum):
    """Where the tag of an image comes from."""

    content = "content"
    git = "git"
    spec = "spec"


class Flavour(enum.StrEnum):
    """Which TensorFlow an image has."""

    cpu = "cpu"
    gpu = "gpu"


class BuilderName(enum.StrEnum):
    """Programs that build images, the one to take first where several are there."""

    docker = "docker"
    podman = "podman"
    buildah = "buildah"


_PLATFORM = re.compile(r"linux/([a-z0-9_]+)(?:/(v[0-9]+))?")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64/v8": "arm64", "armv7l": "arm/v7"}
"""What kernels and people call them, to their one name. Source: github.com/containerd/platforms."""


def parse_platform(text: str) -> str:
    """Return a platform such as linux/amd64 by its one name, whatever the case and the name. Raises UsageError."""
    match = _PLATFORM.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(
            f"{text!r} is not a valid image platform", hint="use a Linux platform, such as linux/amd64 or linux/arm64"
        )
    name = "/".join(part for part in match.groups() if part)
    return f"linux/{_ARCHITECTURES.get(name, name)}"
