"""Whether images are in their registries, and whether a tag stands for the digest that a chart pins.

What a registry says is an answer; that it says nothing, or refuses to, is an error of the kind that fits.
"""

from __future__ import annotations

import enum
import json

from trainchart.publish.image_reference import ImageReference
from trainchart.publish.registry import Registry


class ImageState(enum.StrEnum):
    """What a registry says of an image."""

    there = "there"
    absent = "absent"
    """No such tag or digest."""
    other = "other"
    """The tag stands for another digest."""


def find_image(registry: Registry, image: ImageReference) -> tuple[ImageState, str]:
    """Return what the registry says of an image, and the digest that it has under the tag, else under the digest.

    Where an image has both, the tag counts: it must stand for the digest, or for an index of platforms with it.
    Raises PublishError of the kind that fits where nothing can be known.
    """
    found = registry.read_manifest(image.path, image.tag or image.digest, image.text)
    if found is None:
        return ImageState.absent, ""
    digest, manifest = found
    if image.digest in ("", digest):
        return ImageState.there, digest
    if image.digest in _platforms(manifest):
        # An index may outlive what it lists.
        is_there = registry.read_manifest(image.path, image.digest, image.text) is not None
        return (ImageState.there if is_there else ImageState.absent), image.digest
    return ImageState.other, digest


def _platforms(manifest: bytes) -> set[str]:
    """Return the digests that an index of platforms lists; nothing where the manifest is of one image."""
    try:
        return {str(each["digest"]) for each in json.loads(manifest).get("manifests", ())}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()
