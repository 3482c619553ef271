"""A Helm chart as an OCI artifact, as `helm push` makes it, and what is attached to it in a registry. Pure.

Formats: https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md,
https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#referrers-tag-schema
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.archive.attestation import Attestation, Subject, build_attestations
from trainchart.archive.chart_file import CREATED_ANNOTATION, IDENTITY_ANNOTATION
from trainchart.archive.chart_keys import find_mistaken_key
from trainchart.errors import PublishError
from trainchart.json_documents import parse_json
from trainchart.publish.repository import OWNERS_FILE, Upload, sha256_digest

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
PROVENANCE_TYPE = "application/vnd.cncf.helm.chart.provenance.v1.prov"
OWNERS_TAG = "artifacthub.io"
"""Where Artifact Hub looks beside the versions of a chart: https://artifacthub.io/docs/topics/repositories/helm-charts"""
_OWNERS_CONFIG_TYPE = "application/vnd.cncf.artifacthub.config.v1+yaml"
_OWNERS_TYPE = "application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml"
_OLD_CHART_TYPE = "application/tar+gzip"
"""Of Helm before 3.7, which Helm still takes for a chart."""
_LEADING_KEYS = ("blobs", "manifests", "subject")
"""Keys that lead to other manifests: whether a client follows them depends on the type that the registry announces."""
_MANIFEST_KEYS = frozenset(
    ["annotations", "artifactType", "config", "layers", "mediaType", "schemaVersion", *_LEADING_KEYS]
)
_DESCRIPTOR_KEYS = frozenset(["annotations", "artifactType", "data", "digest", "mediaType", "platform", "size", "urls"])
_SHOWN = 40
"""Bytes of what is no manifest."""
_NO_CHART_HINT = "check the address: something else, such as a login page, may answer for the registry"
_AMBIGUOUS_HINT = "do not use it: readers take different parts of it; publish the chart again"
_TITLE = "org.opencontainers.image.title"
_VERSION = "org.opencontainers.image.version"
_CREATED = "org.opencontainers.image.created"


@dataclass(frozen=True)
class Artifact:
    """All that a registry gets of a chart: blobs by digest, and the manifest that names them."""

    blobs: Mapping[str, bytes]
    manifest: bytes
    tag: str


@dataclass(frozen=True)
class ManifestInfo:
    """What a manifest says of a chart; a digest is empty where there is no such blob."""

    config: str
    chart: str
    provenance: str
    created: str
    identity: str
    sizes: Mapping[str, int]
    """Bytes of each blob, by its digest: Helm's client refuses a blob of another size."""


def version_tag(version: str) -> str:
    """Return the tag of a chart version: tags have no plus sign."""
    return version.replace("+", "_")


def tag_version(tag: str) -> str:
    """Return the chart version that a tag stands for."""
    return tag.replace("_", "+")


def build_artifact(upload: Upload) -> Artifact:
    """Return the artifact of a chart: the same archive and provenance give the same bytes."""
    config = json.dumps(upload.chart, sort_keys=True, ensure_ascii=False, default=str).encode()
    layers = [(CHART_TYPE, upload.archive.data)]
    if upload.provenance is not None:
        layers.append((PROVENANCE_TYPE, upload.provenance))
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, config),
        "layers": [descriptor(media_type, content) for media_type, content in layers],
        "annotations": _annotations(upload),
    }
    blobs = {sha256_digest(content): content for content in (config, *(content for _, content in layers))}
    return Artifact(blobs, json.dumps(manifest, ensure_ascii=False).encode(), version_tag(upload.archive.version))


def build_owners(content: bytes) -> Artifact:
    """Return the artifact that says to Artifact Hub whose a chart is, as `oras push` makes it."""
    config = b"{}"
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(_OWNERS_CONFIG_TYPE, config),
        "layers": [{**descriptor(_OWNERS_TYPE, content), "annotations": {_TITLE: OWNERS_FILE}}],
    }
    blobs = {sha256_digest(blob): blob for blob in (config, content)}
    return Artifact(blobs, json.dumps(manifest).encode(), OWNERS_TAG)


def describe_upload(upload: Upload, artifact: Artifact) -> tuple[Attestation, ...]:
    """Return what says where a chart comes from, about the very manifest that it gets."""
    archive = upload.archive
    subject = Subject(archive.name, archive.version, _sha256(artifact.manifest), _sha256(archive.data))
    return build_attestations(_own_annotations(upload.chart), subject)


def parse_manifest(text: bytes, reference: str) -> ManifestInfo:
    """Return what the manifest of a chart says. Raises PublishError where it is of something else."""
    try:
        manifest = parse_json(text, are_keys_unique=True)
        config = manifest.get("config") or {}
        found = config.get("mediaType") or manifest.get("mediaType")
        if found != CONFIG_TYPE:
            raise PublishError(
                f"{reference} is not a Helm chart but {found!r}",
                hint="charts and images need separate paths: publish the chart below another path, such as /charts",
            )
        _require_unambiguous(manifest, reference)
        layers = {str(layer["mediaType"]): str(layer["digest"]) for layer in manifest["layers"]}
        annotations = manifest.get("annotations") or {}
        return ManifestInfo(
            config=str(config["digest"]),
            chart=layers[CHART_TYPE],
            provenance=layers.get(PROVENANCE_TYPE, ""),
            created=str(annotations.get(_CREATED, "")),
            identity=str(annotations.get(IDENTITY_ANNOTATION, "")),
            sizes={str(each["digest"]): int(each["size"]) for each in (config, *manifest["layers"])},
        )
    except KeyError as error:
        raise PublishError(
            f"{reference} is not a Helm chart: its manifest lacks {error}", hint=_NO_CHART_HINT
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise PublishError(
            f"{reference} is not a Helm chart: the content is not a manifest: {text[:_SHOWN]!r}", hint=_NO_CHART_HINT
        ) from error


def _require_unambiguous(manifest: Mapping[str, Any], reference: str) -> None:
    """Refuse a manifest from which Helm may take another chart, or another signature, than we do."""
    mistaken = find_mistaken_key(manifest, _MANIFEST_KEYS)
    for each in (manifest["config"], *manifest["layers"]):
        mistaken = mistaken or find_mistaken_key(each, _DESCRIPTOR_KEYS)
    if mistaken is not None:
        raise PublishError(f"{reference} is not a Helm chart: in its manifest {mistaken}", hint=_AMBIGUOUS_HINT)
    types = [layer["mediaType"] for layer in manifest["layers"]]
    # Helm's client follows whatever leads to another manifest, and takes the last chart that it meets.
    known = (CHART_TYPE, _OLD_CHART_TYPE, PROVENANCE_TYPE)
    others = [f"a layer of type {kind!r}" for kind in types if kind not in known]
    others += [f"the key {key!r}" for key in _LEADING_KEYS if manifest.get(key) is not None]
    if others:
        raise PublishError(
            f"{reference} is not a Helm chart: its manifest has {others[0]}, which is not part of a chart",
            hint=_AMBIGUOUS_HINT,
        )
    for what, count in (
        ("charts", types.count(CHART_TYPE) + types.count(_OLD_CHART_TYPE)),
        ("signatures", types.count(PROVENANCE_TYPE)),
    ):
        if count > 1:
            raise PublishError(
                f"{reference} is not a Helm chart: its manifest has {count} {what}, where one is expected",
                hint=_AMBIGUOUS_HINT,
            )


def descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    """Return what names a content in a manifest."""
    return {"mediaType": media_type, "digest": sha256_digest(content), "size": len(content)}


def _annotations(upload: Upload) -> dict[str, str]:
    chart = upload.chart
    annotations = _own_annotations(chart)
    sources = chart.get("sources")
    found = {
        "org.opencontainers.image.description": chart.get("description"),
        "org.opencontainers.image.url": chart.get("home"),
        "org.opencontainers.image.source": sources[0] if isinstance(sources, list) and sources else None,
        "org.opencontainers.image.authors": ", ".join(_authors(chart)),
        # Not the clock: publishing again must give the same manifest.
        _CREATED: annotations.get(CREATED_ANNOTATION),
        **annotations,
        _TITLE: upload.archive.name,
        _VERSION: upload.archive.version,
    }
    return {key: str(value) for key, value in sorted(found.items()) if value}


def _own_annotations(chart: Mapping[str, Any]) -> dict[str, str]:
    own = chart.get("annotations")
    return {str(key): str(value) for key, value in own.items()} if isinstance(own, Mapping) else {}


def _sha256(content: bytes) -> str:
    return sha256_digest(content).removeprefix("sha256:")


def _authors(chart: Mapping[str, Any]) -> list[str]:
    found = chart.get("maintainers")
    people = [person for person in found if isinstance(person, Mapping)] if isinstance(found, list) else []
    return [
        f"{person.get('name', '')} ({person['email']})" if person.get("email") else str(person.get("name", ""))
        for person in people
    ]


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
    raise PublishError(f"cannot {what}: the list is not an index of manifests")


def attached_blob(manifest: bytes, media_type: str) -> str:
    """Return the digest of the document that a referrer's manifest attaches; empty where it has none of that type."""
    try:
        layers = {str(layer["mediaType"]): str(layer["digest"]) for layer in parse_json(manifest)["layers"]}
    except (ValueError, KeyError, TypeError):
        return ""
    return layers.get(media_type, "")
