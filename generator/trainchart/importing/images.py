"""The image of a training: repository, tag and digest of what the input names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

UNKNOWN_TAG = "replace-this-tag"
"""Stands for the fixed tag that the input does not name."""
_REFERENCE = re.compile(
    r"(?P<repository>([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@(?P<digest>sha256:[a-f0-9]{64}))?"
)
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
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return None
    tag, digest = match["tag"] or "", match["digest"] or ""
    if not digest and tag in ("", "latest"):
        tag = UNKNOWN_TAG
    elif tag in ("", "latest"):
        tag = "pinned"
    return ImportedImage(match["repository"], tag, digest)
