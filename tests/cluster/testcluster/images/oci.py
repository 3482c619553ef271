"""OCI image layouts as data: the documents of an image of one layer, and what a layout on disk holds.

Pure: reading and writing files is left to the callers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LAYOUT_FILE = '{"imageLayoutVersion": "1.0.0"}'
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
REFERENCE_ANNOTATION = "org.opencontainers.image.ref.name"
CONTAINERD_NAME_ANNOTATION = "io.containerd.image.name"
"""`ctr images import` takes an image's full name from here; the OCI annotation it takes for a mere tag."""


@dataclass(frozen=True)
class Descriptor:
    """A named blob: digest without the prefix "sha256:", and size in bytes."""

    digest: str
    size: int

    def document(self, media_type: str) -> dict[str, Any]:
        return {"mediaType": media_type, "digest": f"sha256:{self.digest}", "size": self.size}


@dataclass(frozen=True)
class StoredImage:
    """An image of a layout: its reference, its manifest, and all blobs it needs, the manifest among them."""

    reference: str
    manifest: Descriptor
    blobs: tuple[str, ...]


def describe(content: bytes) -> Descriptor:
    """Return the descriptor of a blob that is in memory."""
    return Descriptor(hashlib.sha256(content).hexdigest(), len(content))


def image_config(layer: Descriptor, entrypoint: tuple[str, ...], user: str) -> bytes:
    """Return the configuration of an image of one layer that is not compressed."""
    search_path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    config: dict[str, Any] = {"Env": [search_path]}
    if entrypoint:
        config["Entrypoint"] = list(entrypoint)
    if user:
        config["User"] = user
    root = {"type": "layers", "diff_ids": [f"sha256:{layer.digest}"]}
    # buildah refuses an image whose history does not tell of its layers.
    history = [{"created": "1970-01-01T00:00:00Z", "created_by": "trainchart test cluster"}]
    return _dump({"architecture": "amd64", "os": "linux", "config": config, "rootfs": root, "history": history})


def image_manifest(layer: Descriptor, config: Descriptor) -> bytes:
    """Return the manifest of an image of one layer that is not compressed."""
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config.document("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.document("application/vnd.oci.image.layer.v1.tar")],
    }
    return _dump(document)


def image_index(manifests: Mapping[str, Descriptor]) -> str:
    """Return index.json for `manifests`, by reference, as skopeo and containerd read it."""
    entries = []
    for reference, manifest in manifests.items():
        names = {REFERENCE_ANNOTATION: reference, CONTAINERD_NAME_ANNOTATION: reference}
        entries.append({**manifest.document(MANIFEST_TYPE), "annotations": names})
    return json.dumps({"schemaVersion": 2, "manifests": entries})


def parse_layout(index: str, read_blob: Callable[[str], bytes]) -> tuple[StoredImage, ...]:
    """Return the images that index.json names; `read_blob` gives a blob's content by its digest."""
    images = []
    for entry in json.loads(index)["manifests"]:
        digest = _bare(entry["digest"])
        manifest = json.loads(read_blob(digest))
        blobs = (digest, _bare(manifest["config"]["digest"]), *(_bare(layer["digest"]) for layer in manifest["layers"]))
        reference = entry["annotations"][REFERENCE_ANNOTATION]
        images.append(StoredImage(reference, Descriptor(digest, entry["size"]), blobs))
    return tuple(images)


def _bare(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
