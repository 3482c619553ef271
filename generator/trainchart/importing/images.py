"""The image of a training: repository, tag and digest of what the input names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainchart.errors import PublishError
from trainchart.publish.image_reference import parse_image_reference

UNKNOWN_TAG = "replace-this-tag"
"""Stands for the fixed tag that the input does not name."""
_VERSION = re.compile(r"([0-9]+\.[0-9]+(\.[0-9]+)?)(?![0-9])")


@dataclass(frozen=True)
class ImportedImage:
    """An image as the spec says it."""

    repository: str
    tag: str
    digest: str = ""

    @property
    def is_moving(self) -> bool:
        """Whether the input names no fixed image."""
        return self.tag == UNKNOWN_TAG

    @property
    def settings(self) -> dict[str, Any]:
        """The section `image` of the spec."""
        digest = {"digest": self.digest} if self.digest else {}
        return {"repository": self.repository, "tag": self.tag, **digest}

    @property
    def tensorflow(self) -> str:
        """The version of TensorFlow that the image's tag says; empty where it says none."""
        found = _VERSION.match(self.tag) if self.repository.rpartition("/")[2].startswith("tensorflow") else None
        return found[1] if found else ""


def read_image(reference: str) -> ImportedImage | None:
    """Return the image of a reference; None where it is not one."""
    try:
        found = parse_image_reference(reference)
    except PublishError:
        return None
    repository = reference.removesuffix(f"@{found.digest}").removesuffix(f":{found.tag}")
    if found.tag not in ("", "latest"):
        return ImportedImage(repository, found.tag, found.digest)
    return ImportedImage(repository, "pinned" if found.digest else UNKNOWN_TAG, found.digest)
