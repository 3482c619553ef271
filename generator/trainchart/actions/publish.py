"""Publish a chart: pack it where it is a folder, and publish it in a repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from trainchart.actions.package import build_archive, sign_archive
from trainchart.actions.support.image_check import require_images
from trainchart.actions.support.owners import put_owners, read_owners
from trainchart.actions.support.rendered_version import require_rendering
from trainchart.actions.support.repository_access import Address, ImageAccess, open_repository
from trainchart.archive.provenance import PROVENANCE_LIMIT, read_clear_text, stated_digest
from trainchart.archive.read import parse_packed_chart
from trainchart.check.rules.training import list_token_images
from trainchart.errors import ToolError
from trainchart.helm.io.inputs import require_chart
from trainchart.host.files import read_bytes
from trainchart.publish.repository import (
    Publication,
    Upload,
    add_upload,
    find_publication,
    prepare_upload,
    sha256_digest,
)


@dataclass(frozen=True)
class PublishedChart:
    """A chart and what became of it in the repository."""

    name: str
    version: str
    identity: str
    publication: Publication
    warnings: tuple[str, ...] = ()
    """What users of the version should know; nothing where it was published before."""


@dataclass(frozen=True)
class PublishOptions:
    """How to publish: after which images were found, with which engine and key, and whether drift is allowed."""

    images: ImageAccess | None
    """How images are looked for; None: they are not looked for."""
    engine: str = "auto"
    allow_drift: bool = False
    sign: str = ""
    owners: Path | None = None
    """A file that says to Artifact Hub whose repository this is, to be put beside the index or the versions."""
    environment: Mapping[str, str] = field(default_factory=dict)


def publish_chart(chart: Path, to: Address, options: PublishOptions) -> PublishedChart:
    """Publish the chart at `chart`; an archive's bytes as they are, with the .prov beside it.

    Where a key to `sign` with is named, a .prov file is made again.

    Raises VersionConflict where the version has other content there, another PublishError where the repository
    cannot be used, what require_images raises, and what build_archive raises where the chart is not fit to be packed.
    """
    environment = options.environment
    if chart.is_dir():
        archive = build_archive(chart, engine=options.engine, allow_drift=options.allow_drift, environment=environment)
        upload = prepare_upload(archive.data, created=utc_now())
    else:
        upload = _read_upload(chart, is_signed_again=bool(options.sign))
    if options.sign:
        upload = replace(upload, provenance=sign_archive(upload.archive, options.sign, environment))
    owners = read_owners(options.owners)
    with open_repository(to, environment) as repository:
        put_owners(repository, upload.archive.name, owners)
        publication = find_publication(repository, upload)
        warnings: tuple[str, ...] = ()
        if publication is None:
            files = parse_packed_chart(upload.archive.data).files
            # An archive made elsewhere too: an entry that helm cannot read spoils a whole index.
            rendering = require_rendering(files, options.engine, with_install=options.images is not None)
            if options.images is not None:
                require_images(files, rendering, options.images)
            publication = add_upload(repository, upload)
            warnings = list_token_images(rendering)
    name, version, identity = upload.archive.name, upload.archive.version, upload.archive.identity
    return PublishedChart(name, version, identity, publication, warnings)


def utc_now() -> str:
    """Return the time in RFC 3339."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_upload(archive: Path, *, is_signed_again: bool) -> Upload:
    require_chart(archive)
    try:
        upload = prepare_upload(read_bytes(archive), created=utc_now())
    except ToolError as error:
        raise ToolError(f"{archive}: {error.message}", hint=error.hint) from error
    signature = archive.with_name(f"{archive.name}.prov")
    # One that is made again does not matter.
    return upload if is_signed_again or not signature.is_file() else _with_signature(upload, signature)


def _with_signature(upload: Upload, signature: Path) -> Upload:
    """Return the upload with its .prov file. Raises ToolError where that is about another archive."""
    provenance, name = read_bytes(signature, limit=PROVENANCE_LIMIT), upload.archive.filename
    stated, digest = stated_digest(read_clear_text(provenance), name), sha256_digest(upload.archive.data)
    if stated != digest:
        raise ToolError(
            f"{signature} signs {stated or f'no {name}'}, but the archive is {digest}",
            hint="sign it again with --sign, or remove that file: the signature of a published version is immutable",
        )
    return replace(upload, provenance=provenance)
