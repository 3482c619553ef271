"""Which build of an image a pod runs: a tag may be pushed again, and a node keeps what it has pulled.

Pure; the run controller and the CLI ask the same question here.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Tuple

from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.log_text import shorten

_IMAGE_ID = re.compile(r"(?:(?P<source>.+)@)?(?:sha256:)?(?P<digest>[0-9a-f]{64})")
"""What comes after the container runtime's scheme, such as docker-pullable://, where there is one."""
_DIGITS_SHOWN = 12
IMAGES_KEPT = 8
BUILDS_KEPT = 4
"""Of one image."""
NAME_LIMIT = 1000
"""Characters kept of the name of an image, which Kubernetes does not limit: the record of a run holds some."""


class Build(NamedTuple):
    """What the training container of a pod runs, where its image is not named by digest."""

    image: str
    """As the pod names it."""
    source: str
    """The repository that it came from; empty where the runtime names none, as for an image that was loaded by hand.

    Digests are compared within one source only: that of a repository is of a manifest, the other of a configuration.
    """
    digest: str

    @property
    def short(self) -> str:
        """Return what tells builds of one image apart, as short as people write it."""
        words = f"sha256:{self.digest[:_DIGITS_SHOWN]}"
        return f"{self.source}@{words}" if self.source else words


def read_build(pod: Mapping[str, Any]) -> Optional[Build]:
    """Return what a pod object runs; None before its image is on its node, and for an image named by digest."""
    image = str(_find_training(pod, "spec", "containers").get("image") or "")
    image_id = str(_find_training(pod, "status", "containerStatuses").get("imageID") or "").rpartition("://")[2]
    found = _IMAGE_ID.fullmatch(image_id)
    if not image or "@" in image or not found:
        return None
    return Build(shorten(image, NAME_LIMIT), shorten(found["source"] or "", NAME_LIMIT), found["digest"])


def add_builds(
    known: Mapping[str, Mapping[str, str]], found: Iterable[Tuple[Build, str]]
) -> Mapping[str, Mapping[str, str]]:
    """Return image → short build → one node that has it, with the builds and nodes in `found`."""
    builds: Dict[str, Dict[str, str]] = {image: dict(nodes) for image, nodes in known.items()}
    for build, node in found:
        if build.image not in builds and len(builds) >= IMAGES_KEPT:
            continue
        nodes = builds.setdefault(build.image, {})
        if len(nodes) < BUILDS_KEPT:
            nodes.setdefault(build.short, node)
    return builds


def describe_build(build: Build, node: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """Return how the build of a pod differs from others of the same image; "" where no other is known."""
    others = [
        f"{short.rpartition('@')[2]} on {place}"
        for short, place in known.get(build.image, {}).items()
        if short.rpartition("@")[0] == build.source and short != build.short
    ]
    if not others:
        return ""
    own = build.short.rpartition("@")[2]
    return f"{own} of {build.image} on {node}; under the same tag, other pods ran {', '.join(others)}"


def _find_training(pod: Mapping[str, Any], part: str, key: str) -> Mapping[str, Any]:
    entries = (pod.get(part) or {}).get(key) or ()
    return next((each for each in entries if each.get("name") == TRAINING_CONTAINER), {})
