"""Image references as Kubernetes reads them: where an image is, by which tag and digest. Pure.

Grammar: https://github.com/distribution/reference
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace

from trainchart.errors import PublishError

DOCKER_HUB = "docker.io"
_DOCKER_HUB_NAMES = (DOCKER_HUB, "index.docker.io")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<host>[A-Za-z0-9.-]+(?::[0-9]+)?|\[[0-9A-Fa-f:]+\](?::[0-9]+)?)/)?(?P<path>{_PART}(?:/{_PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class ImageReference:
    """An image: host and path of its repository, and the tag, the digest, or both."""

    text: str
    """As the chart writes it."""
    host: str
    path: str
    tag: str
    digest: str

    @property
    def base(self) -> str:
        """The host that answers for the registry: Docker Hub's is another than images say."""
        return "registry-1.docker.io" if self.host == DOCKER_HUB else self.host

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the registry is on loopback, which container runtimes speak to without encryption too."""
        name = re.sub(r":[0-9]+$", "", self.host).strip("[]")
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost"


def parse_image_reference(text: str) -> ImageReference:
    """Return what `text` names. Raises PublishError where no registry can hold it."""
    first, slash, _ = text.partition("/")
    # Without a dot, a port or this name, the first part is a path of Docker Hub.
    has_host = bool(slash) and (any(char in first for char in ".:[") or first == "localhost")
    match = _REFERENCE.fullmatch(text if has_host else f"{DOCKER_HUB}/{text}")
    if match is None:
        raise PublishError(
            f"{text!r} is not a valid image reference", hint="expected HOST/PATH:TAG, HOST/PATH@sha256:DIGEST, or both"
        )
    host, path, tag, digest = match["host"], match["path"], match["tag"] or "", match["digest"] or ""
    if host in _DOCKER_HUB_NAMES:
        host, path = DOCKER_HUB, path if "/" in path else f"library/{path}"
    return ImageReference(text, host, path, tag or ("" if digest else "latest"), digest)


def with_tag(image: ImageReference, tag: str) -> ImageReference:
    """Return the image with a tag that its digest must be found under."""
    return replace(image, tag=tag, text=f"{image.text.partition('@')[0]}:{tag}@{image.digest}")
