"""What is attached to an artifact in a registry: its manifest, and the index that lists it where the registry does not.

Pure. Formats: https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md,
https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.attestation import Attestation
from trainchart.errors import PublishError
from trainchart.json_text import parse_json
from trainchart.publish.oci_manifest import MANIFEST_TYPE, descriptor

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
EMPTY = b"{}"


@dataclass(frozen=True)
class Referrer:
    """A manifest that refers to another one, and how lists describe it."""

    manifest: bytes
    described: Mapping[str, Any]

    @property
    def digest(self) -> str:
        return str(self.described["digest"])


def build_referrer(subject: bytes, attestation: Attestation) -> Referrer:
    """Return what attaches a document to the manifest `subject`: the same bytes every time."""
    kind = {"artifactType": attestation.media_type, "annotations": dict(attestation.annotations)}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": attestation.media_type,
        "config": descriptor(EMPTY_TYPE, EMPTY),
        "layers": [descriptor(attestation.media_type, attestation.content)],
        "subject": descriptor(MANIFEST_TYPE, subject),
        "annotations": kind["annotations"],
    }
    text = json.dumps(manifest, ensure_ascii=False).encode()
    return Referrer(text, {**descriptor(MANIFEST_TYPE, text), **kind})


def referrers_tag(digest: str) -> str:
    """Return the tag under which registries without a list of referrers keep one."""
    return digest.replace(":", "-")


def add_referrers(index: bytes | None, referrers: tuple[Referrer, ...], what: str) -> bytes | None:
    """Return the index with `referrers` in it, those of others left alone; None where it has them all."""
    listed = [] if index is None else list_referrers(index, what)
    known = {each.get("digest") for each in listed}
    new = [referrer.described for referrer in referrers if referrer.digest not in known]
    if not new:
        return None
    document = {"schemaVersion": 2, "mediaType": INDEX_TYPE} if index is None else parse_json(index)
    return json.dumps({**document, "manifests": [*listed, *new]}, ensure_ascii=False).encode()


def list_referrers(index: bytes, what: str) -> list[Mapping[str, Any]]:
    """Return the descriptors of an index. Raises PublishError where it is none; `what` completes "cannot …"."""
    try:
        document = parse_json(index)
        if document["mediaType"] == INDEX_TYPE and all(isinstance(each, dict) for each in document["manifests"]):
            return list(document["manifests"])
    except (ValueError, KeyError, TypeError):
        pass
    raise PublishError(f"cannot {what}: what lists them is no index of manifests")


def attached_blob(manifest: bytes, media_type: str) -> str:
    """Return the digest of the document that a referrer's manifest attaches; empty where it has none of that type."""
    try:
        layers = {str(layer["mediaType"]): str(layer["digest"]) for layer in parse_json(manifest)["layers"]}
    except (ValueError, KeyError, TypeError):
        return ""
    return layers.get(media_type, "")
