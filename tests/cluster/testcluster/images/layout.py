"""OCI image layouts on disk: write an image of one layer, read what is there, share blobs by hard links.

A blob never changes once it has its name, so layouts, registries and containerd may all link to one file.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

from tests.cluster.testcluster.images import oci


def read_layout(layout: Path) -> tuple[oci.StoredImage, ...]:
    """Return the images of a layout."""
    return oci.parse_layout((layout / "index.json").read_text(), lambda digest: blob_path(layout, digest).read_bytes())


def blob_path(layout: Path, digest: str) -> Path:
    return layout / "blobs" / "sha256" / digest


def write_image(layout: Path, reference: str, layer: Path, entrypoint: tuple[str, ...] = (), user: str = "") -> None:
    """Add an image to a layout; its only layer is the tar file `layer`, which moves into the layout."""
    blob_path(layout, "").mkdir(parents=True, exist_ok=True)
    (layout / "oci-layout").write_text(oci.LAYOUT_FILE)
    descriptor = oci.Descriptor(file_digest(layer), layer.stat().st_size)
    layer.replace(blob_path(layout, descriptor.digest))
    config = oci.image_config(descriptor, entrypoint, user)
    manifest = oci.image_manifest(descriptor, oci.describe(config))
    for content in (config, manifest):
        blob_path(layout, oci.describe(content).digest).write_bytes(content)
    _add_manifest(layout, reference, oci.describe(manifest))


def add_image(layout: Path, image: oci.StoredImage) -> None:
    """Add an image whose blobs are in the layout already."""
    _add_manifest(layout, image.reference, image.manifest)


def _add_manifest(layout: Path, reference: str, manifest: oci.Descriptor) -> None:
    present = read_layout(layout) if (layout / "index.json").exists() else ()
    manifests = {image.reference: image.manifest for image in present} | {reference: manifest}
    (layout / "index.json").write_text(oci.image_index(manifests))


def write_program_layer(program: Path, name: str, target: Path) -> None:
    """Write a layer that holds only the static program `/name`, the same bytes for the same program."""
    with tarfile.open(target, "w") as archive, program.open("rb") as content:
        member = tarfile.TarInfo(name)
        member.size, member.mode = program.stat().st_size, 0o755
        archive.addfile(member, content)


def link_blobs(source: Path, target: Path) -> None:
    """Let the layout `target` have all blobs of `source`, but none of its images."""
    blob_path(target, "").mkdir(parents=True, exist_ok=True)
    for blob in blob_path(source, "").iterdir():
        os.link(blob, blob_path(target, blob.name))


def write_archive(layout: Path, held: frozenset[str], target: Path) -> None:
    """Write the layout as an archive for `ctr images import`, without the blobs that containerd holds already."""
    images = read_layout(layout)
    index = oci.image_index({image.reference: image.manifest for image in images}).encode()
    blobs = {blob for image in images for blob in image.blobs}
    with tarfile.open(target, "w") as archive:
        for name, content in (("oci-layout", oci.LAYOUT_FILE.encode()), ("index.json", index)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for blob in sorted(blobs - held):
            archive.add(blob_path(layout, blob), f"blobs/sha256/{blob}")


def file_digest(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
