"""What a registry knows about an image: digest, size, platforms and labels. Pushing one is the builders' work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.errors import PublishError
from trainchart.publish.http import HttpClient
from trainchart.publish.location import Location, parse_location
from trainchart.publish.registry import Registry
from trainchart.publish.repository import sha256_digest

_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_DOCKER_HUB = "docker.io"


@dataclass(frozen=True)
class PublishedImage:
    """An image of a registry."""

    digest: str
    size: int
    """Bytes to pull, for the first platform."""
    platforms: tuple[str, ...]
    labels: Mapping[str, str]
    """Of the first platform."""


def locate_images(repository: str, *, plain_http: bool) -> Location:
    """Return where images called `repository` are: without a host, on Docker Hub. Raises PublishError."""
    first, slash, rest = repository.partition("/")
    if not slash or not (set(first) & set(".:") or first == "localhost"):
        first, rest = _DOCKER_HUB, repository if slash else f"library/{repository}"
    host = f"registry-1.{_DOCKER_HUB}" if first == _DOCKER_HUB else first
    return parse_location(f"oci://{host}/{rest}", plain_http=plain_http)


class ImageRepository:
    """The images of one name."""

    def __init__(self, location: Location, client: HttpClient) -> None:
        self._registry = Registry(client)
        self._path = location.path
        self._url = location.url

    def find(self, reference: str) -> PublishedImage | None:
        """Return the image of a tag or digest; None where there is none. Raises PublishError."""
        body = self._read(reference)
        if body is None:
            return None
        document = _parse(body, self._name(reference))
        digest, platforms = sha256_digest(body), tuple(_platforms(document))
        if document.get("mediaType") in _INDEXES or "manifests" in document:
            first = next((each["digest"] for each in document["manifests"] if _platform(each)), None)
            below = self._read(str(first)) if first else None
            if below is None:
                raise PublishError(f"{self._name(reference)} is an index without an image that is there")
            document = _parse(below, self._name(reference))
        try:
            blobs = (document["config"], *document["layers"])
            size = sum(int(blob["size"]) for blob in blobs)
            config = _parse(self._registry.read_blob(self._path, document["config"]["digest"]), self._name(reference))
            labels = (config.get("config") or {}).get("Labels") or {}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PublishError(f"{self._name(reference)} is no image: {error!r}") from error
        return PublishedImage(digest, size, platforms or (_platform({"platform": config}),), dict(labels))

    def _read(self, reference: str) -> bytes | None:
        accept = ", ".join((*_MANIFESTS, *_INDEXES))
        return self._registry.read_manifest(self._path, reference, accept, self._name(reference))

    def _name(self, reference: str) -> str:
        name = self._url.removeprefix("oci://")
        return f"{name}@{reference}" if ":" in reference else f"{name}:{reference}"


def _parse(body: bytes, name: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise PublishError(f"{name} is no image: its manifest is no JSON") from error
    if not isinstance(document, dict):
        raise PublishError(f"{name} is no image: its manifest is no JSON object")
    return document


def _platforms(document: Mapping[str, Any]) -> list[str]:
    return [name for name in map(_platform, document.get("manifests") or ()) if name]


def _platform(entry: Mapping[str, Any]) -> str:
    """Return os/architecture; empty for what is none, such as a record of the build."""
    platform = entry.get("platform") or {}
    parts = (platform.get("os"), platform.get("architecture"), platform.get("variant"))
    name = "/".join(str(part) for part in parts if part)
    return "" if name.startswith("unknown") else name
