"""Prepare what a cluster is made from, programs and images, or take them from the user's cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .bring_up import Ingredients
from .config import Programs
from .images import ImagePrograms, ImageSet, build_images
from .programs import find_program


def prepare_images() -> ImageSet:
    """Return the images that every cluster holds, building them first where they are not in the cache."""
    programs = ImagePrograms(pause=find_program("pause"), coredns=find_program("coredns"))
    return build_images(programs, report=lambda line: print(line, file=sys.stderr, flush=True))


def prepare_ingredients() -> Ingredients:
    """Return everything a cluster starts from, building first what is not in the cache: minutes on a new machine."""
    images = prepare_images()
    return Ingredients(
        programs=Programs(
            kubernetes=str(find_program("kubernetes")),
            storage=str(find_program("storage")),
            networkpolicy=str(find_program("networkpolicy")),
            kwok=str(find_program("kwok")),
        ),
        containerd_root=str(images.containerd_root),
        registry_storage=str(images.registry_storage),
        pause_image=images.pause,
        coredns_image=images.coredns,
    )


def find_home() -> Path:
    """Return the folder below which every cluster of this user has its own; on the file system of the images."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trainchart", "clusters")
