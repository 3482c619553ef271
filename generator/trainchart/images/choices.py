"""What a user chooses by name about an image. Light, so that `trainchart --help` is."""

from __future__ import annotations

import enum


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
