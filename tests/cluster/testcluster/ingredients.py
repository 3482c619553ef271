"""Prepare what a cluster is made from, programs and images, or take them from the user's cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .bring_up import Ingredients
from .cache_folder import find_cache
from .config import Programs
from .images import ImagePrograms, ImageSet, build_images
from .programs import find_program


def prepare_images() -> ImageSet:
    """Return the images that every cluster holds, building them first where they are not in the cache."""
    programs = ImagePrograms(pause=find_program("pause", tell), coredns=find_program("coredns", tell))
    return build_images(programs, tell)


def prepare_ingredients() -> Ingredients:
    """Return everything a cluster starts from, building first what is not in the cache: minutes on a new machine."""
    images = prepare_images()
    return Ingredients(
        programs=Programs(
            kubernetes=str(find_program("kubernetes", tell)),
            storage=str(find_program("storage", tell)),
            networkpolicy=str(find_program("networkpolicy", tell)),
            kwok=str(find_program("kwok", tell)),
            helm=str(find_program("helm-4", tell)),
        ),
        containerd_root=str(images.containerd_root),
        registry_storage=str(images.registry_storage),
        pause_image=images.pause,
        coredns_image=images.coredns,
    )


def tell(line: str) -> None:
    """Tell the user about work that takes a while."""
    print(line, file=sys.stderr, flush=True)


def find_home() -> Path:
    """Return the folder below which every cluster of this user has its own; on the file system of the images."""
    return find_cache(os.environ, "clusters")
