"""What registries know about images: whether they are there under tag and digest, their size, platforms and labels.

What a registry says is an answer; that it says nothing, or refuses to, is an error of the kind that fits. Pushing an
image is the builders' work.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.errors import PublishError
from trainchart.json_documents import parse_json
from trainchart.publish.image_reference import ImageReference
from trainchart.publish.io.registry import Registry
from trainchart.publish.layer import find_file

LAYER_LIMIT = 16 * 1024 * 1024
"""Bytes of the layers that are pulled to find a file in them."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class ImageState(enum.StrEnum):
    """What a registry says of an image."""

    there = "there"
    absent = "absent"
    """No such tag or digest."""
    other = "other"
    """The tag stands for another digest."""


@dataclass(frozen=True)
class PublishedImage:
    """An image of a registry."""

    digest: str
    size: int
    """Bytes to pull, for the first platform."""
    platforms: tuple[str, ...]
    labels: Mapping[str, str]
    """Of the first platform."""


def find_image(registry: Registry, image: ImageReference, *, may_be_listed: bool = True) -> tuple[ImageState, str]:
    """Return what the registry says of an image, and the digest that it has under the tag, else under the digest.

    Where an image has both, the tag counts: it must stand for the digest, or, with `may_be_listed`, for an index of
    platforms with it: of such an index, a pod that names the tag may get another image.
    Raises PublishError of the kind that fits where nothing can be known.
    """
    found = registry.read_manifest(image.path, image.tag or image.digest, image.text)
    if found is None:
        return ImageState.absent, ""
    digest, manifest = found
    if image.digest in ("", digest):
        return ImageState.there, digest
    if may_be_listed and image.digest in _list_digests(manifest):
        # An index may outlive what it lists.
        is_there = registry.read_manifest(image.path, image.digest, image.text) is not None
        return (ImageState.there if is_there else ImageState.absent), image.digest
    return ImageState.other, digest


def read_image(registry: Registry, image: ImageReference) -> PublishedImage | None:
    """Return what the registry has under a digest, else under a tag; None where there is nothing.

    Raises PublishError.
    """
    found = _read_manifests(registry, image)
    if found is None:
        return None
    digest, platforms, document = found
    described = document.get("config")
    if not isinstance(described, dict):
        raise _not_an_image(image, "its manifest names no config")
    size = sum(_size(blob, image) for blob in (described, *_entries(document, "layers", image)))
    config = _parse(registry.read_blob(image.path, _digest(described, image)), image.text)
    settings = config.get("config") or {}
    labels = (settings.get("Labels") or {}) if isinstance(settings, dict) else None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise _not_an_image(image, "the labels in its config are not strings by name")
    return PublishedImage(digest, size, platforms or (_platform({"platform": config}),), labels)


def read_image_file(registry: Registry, image: ImageReference, path: str) -> bytes | None:
    """Return a file of an image's last layers; None where they do not have it, down to the first that is large.

    Of the first platform, under a digest, else under a tag. Raises PublishError.
    """
    found = _read_manifests(registry, image)
    layers = _entries(found[2], "layers", image) if found else ()
    for layer in reversed(layers):
        if _size(layer, image) > LAYER_LIMIT:
            return None
        blob = registry.read_blob(image.path, _digest(layer, image))
        if len(blob) != layer["size"]:
            raise _not_an_image(image, f"a layer has {len(blob)} bytes, and its manifest states {layer['size']}")
        content = find_file(blob, path, image.text)
        if content is not None:
            return content
    return None


def _read_manifests(registry: Registry, image: ImageReference) -> tuple[str, tuple[str, ...], Mapping[str, Any]] | None:
    """Return digest and platforms of an image, and the manifest of the first platform; None where there is none."""
    found = registry.read_manifest(image.path, image.digest or image.tag, image.text)
    if found is None:
        return None
    digest, body = found
    document = _parse(body, image.text)
    listed = _entries(document, "manifests", image)
    platforms = tuple(name for name in map(_platform, listed) if name)
    if "manifests" in document:
        first = next((_digest(each, image) for each in listed if _platform(each)), None)
        below = registry.read_manifest(image.path, first, image.text) if first else None
        if below is None:
            raise PublishError(f"{image.text} is an index whose images do not exist")
        document = _parse(below[1], image.text)
    return digest, platforms, document


def _list_digests(manifest: bytes) -> set[str]:
    """Return the digests that an index of platforms lists; nothing where the manifest is of one image."""
    try:
        return {str(each["digest"]) for each in parse_json(manifest).get("manifests", ())}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def _parse(body: bytes, name: str) -> Mapping[str, Any]:
    try:
        document = parse_json(body)
    except ValueError as error:
        raise PublishError(f"{name} is not an image: its manifest is not JSON") from error
    if not isinstance(document, dict):
        raise PublishError(f"{name} is not an image: its manifest is not a JSON object")
    return document


def _entries(document: Mapping[str, Any], key: str, image: ImageReference) -> tuple[Mapping[str, Any], ...]:
    """Return the descriptors that a manifest lists under `key`; nothing where it has no such list."""
    found = document.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _not_an_image(image, f"{key} of its manifest is not a list of objects")
    return tuple(found)


def _size(described: Mapping[str, Any], image: ImageReference) -> int:
    size = described.get("size")
    if type(size) is not int or size < 0:
        raise _not_an_image(image, f"the size of a part of it is {size!r}, not a number of bytes")
    return size


def _digest(described: Mapping[str, Any], image: ImageReference) -> str:
    """Return a digest that the content can be compared with: a tag stands for whatever the registry likes."""
    digest = described.get("digest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _not_an_image(image, f"it lists {digest!r}, which is not a sha256 digest")
    return digest


def _not_an_image(image: ImageReference, why: str) -> PublishError:
    return PublishError(f"{image.text} is not an image: {why}", hint="check the name, and push the image again")


def _platform(entry: Mapping[str, Any]) -> str:
    """Return os/architecture; empty for what is none, such as a record of the build."""
    platform = entry.get("platform")
    if not isinstance(platform, dict):
        return ""
    parts = (platform.get("os"), platform.get("architecture"), platform.get("variant"))
    name = "/".join(str(part) for part in parts if part)
    return "" if name.startswith("unknown") else name
