"""The storage folder of a docker-registry with images in it, written without running one: links to a layout's blobs.

The format is that of the registry's filesystem driver, which has been the same since its version 2.0.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

from tests.cluster.testcluster.images.layout import blob_path
from tests.cluster.testcluster.images.oci import StoredImage

_ROOT = PurePosixPath("docker/registry/v2")


def write_registry_storage(storage: Path, layout: Path, images: tuple[tuple[str, StoredImage], ...]) -> None:
    """Write `images`, each with the "repository:tag" to serve it as, into a new storage folder."""
    for name, image in images:
        for blob in image.blobs:
            target = storage / blob_data(blob)
            if not target.exists():
                target.parent.mkdir(parents=True)
                os.link(blob_path(layout, blob), target)
        for path, digest in link_files(name, image).items():
            target = storage / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"sha256:{digest}")


def copy_registry_storage(source: Path, target: Path) -> None:
    """Copy a storage folder to `target`, which must not exist yet; its parent must.

    Blobs, which never change, become hard links where the file system is the same. Link files are copied: the
    registry writes into them when a tag moves.
    """
    (target / _ROOT).mkdir(parents=True)
    linked = source.stat().st_dev == target.stat().st_dev
    subprocess.run(["cp", "-al" if linked else "-a", source / _ROOT / "blobs", target / _ROOT], check=True)
    subprocess.run(["cp", "-a", source / _ROOT / "repositories", target / _ROOT], check=True)


def blob_data(digest: str) -> PurePosixPath:
    """Return where the storage has the content of a blob."""
    return _ROOT / "blobs" / "sha256" / digest[:2] / digest / "data"


def link_files(name: str, image: StoredImage) -> dict[PurePosixPath, str]:
    """Return the storage's small files that make `image` known as "repository:tag": path → digest they point to."""
    repository, _, tag = name.rpartition(":")
    folder = _ROOT / "repositories" / repository
    manifest = image.manifest.digest
    links = {
        folder / "_manifests" / "tags" / tag / "current" / "link": manifest,
        folder / "_manifests" / "tags" / tag / "index" / "sha256" / manifest / "link": manifest,
        folder / "_manifests" / "revisions" / "sha256" / manifest / "link": manifest,
    }
    return links | {folder / "_layers" / "sha256" / blob / "link": blob for blob in image.blobs if blob != manifest}
