"""What is attached to a chart in a registry, as referrers of its manifest.

A registry of OCI 1.1 lists referrers by itself and says so; in others the client keeps the list, under a tag that no
chart version can have.
"""

from __future__ import annotations

from trainchart.archive.attestation import Attestation
from trainchart.errors import PublishError, RepositoryUnauthorized, RepositoryUnreachable
from trainchart.publish.io.http import Answer, refusal
from trainchart.publish.io.registry import Registry
from trainchart.publish.oci_manifest import (
    EMPTY,
    INDEX_TYPE,
    MANIFEST_TYPE,
    Referrer,
    add_referrers,
    attached_blob,
    build_referrer,
    list_referrers,
    referrers_tag,
)
from trainchart.publish.repository import sha256_digest

_DOCUMENTS = 100
_DOCUMENT_BYTES = 16 * 1024 * 1024
_WITHOUT_LIST = (400, 404, 405, 406, 501)
"""What registries answer whose distribution API is older than 1.1."""


def attach(registry: Registry, path: str, subject: bytes, attestations: tuple[Attestation, ...]) -> str:
    """Attach documents to the manifest `subject` of the repository at `path`, which may not be there yet.

    Returns why the registry takes no such manifests, empty where it does. Raises PublishError where that cannot be
    known: no answer, or no login.
    """
    referrers = tuple(build_referrer(subject, attestation) for attestation in attestations)
    if not referrers:
        return ""
    what = f"attach the origin of {path.rpartition('/')[2]} to it"
    for content in (EMPTY, *(attestation.content for attestation in attestations)):
        registry.push_blob(path, content, what)
    is_listed = True
    for referrer in referrers:
        answer = registry.push_manifest(path, referrer.digest, referrer.manifest, MANIFEST_TYPE, what)
        if not answer.is_done:
            return _refused(answer, what, registry)
        is_listed = is_listed and "oci-subject" in answer.headers
    return "" if is_listed else _list(registry, path, sha256_digest(subject), referrers, what)


def read_attached(registry: Registry, path: str, digest: str, media_type: str) -> tuple[bytes, ...]:
    """Return the documents of a type that are attached to the manifest `digest`. Raises PublishError."""
    what = f"list what is attached to {path.rpartition('/')[2]}"
    listed = [
        str(each["digest"])
        for index in _read_lists(registry, path, digest, what)
        for each in list_referrers(index, what)
        if each.get("artifactType") == media_type
    ]
    found = tuple(dict.fromkeys(listed))
    documents: list[bytes] = []
    for referrer in found:
        # All who may push to the repository may attach to the chart, as much as they like.
        if len(found) > _DOCUMENTS or sum(map(len, documents)) > _DOCUMENT_BYTES:
            raise PublishError(
                f"cannot {what}: more than {_DOCUMENTS} documents or {_DOCUMENT_BYTES} bytes of one type",
                hint="remove what others have attached, or publish a new version",
            )
        manifest = registry.read_manifest(path, referrer, f"what is attached to {path}")
        blob = attached_blob(manifest[1], media_type) if manifest is not None else ""
        if blob:
            documents.append(registry.read_blob(path, blob))
    return tuple(documents)


def _read_lists(registry: Registry, path: str, digest: str, what: str) -> list[bytes]:
    """Return the pages of the registry's list of referrers, else the list that clients keep."""
    pages: list[Answer] = []
    for answer in registry.read_pages(registry.address(path, f"referrers/{digest}"), what):
        if answer.status in _WITHOUT_LIST:
            kept = registry.read_manifest(path, referrers_tag(digest), what.removeprefix("list "))
            return [kept[1]] if kept is not None else []
        if not answer.is_done:
            raise refusal(answer, what, registry.base)
        pages.append(answer)
    return [page.body for page in pages]


def _list(registry: Registry, path: str, digest: str, referrers: tuple[Referrer, ...], what: str) -> str:
    """Add referrers to the list that clients keep."""
    tag = referrers_tag(digest)
    kept = registry.read_manifest(path, tag, f"what is attached to {path}")
    index = add_referrers(kept[1] if kept is not None else None, referrers, what)
    if index is None:
        return ""
    answer = registry.push_manifest(path, tag, index, INDEX_TYPE, what)
    return "" if answer.is_done else _refused(answer, what, registry)


def _refused(answer: Answer, what: str, registry: Registry) -> str:
    """Return why a manifest is refused; raise what says nothing about manifests."""
    error = refusal(answer, what, registry.base)
    if isinstance(error, RepositoryUnauthorized | RepositoryUnreachable):
        raise error
    return error.message
