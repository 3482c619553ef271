"""Publish a chart: pack it where it is a folder, and give it to a repository for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from trainchart.actions.package import build_archive, sign_archive
from trainchart.actions.repository_access import Address, open_repository
from trainchart.host.files import read_bytes
from trainchart.host.helm_input import require_chart
from trainchart.publish.repository import Publication, Upload, prepare_upload, publish_upload


@dataclass(frozen=True)
class PublishedChart:
    """A chart and what became of it in the repository."""

    name: str
    version: str
    identity: str
    publication: Publication


def publish_chart(
    chart: Path,
    to: Address,
    *,
    engine: str = "auto",
    allow_drift: bool = False,
    sign: str = "",
    environment: Mapping[str, str],
) -> PublishedChart:
    """Publish the chart at `chart`; an archive's bytes as they are, with the .prov beside it.

    Where a key to `sign` with is named, a .prov file is made anew.

    Raises VersionConflict where the version has other content there, another PublishError where the repository
    cannot be used, and what package_chart raises where the chart is not fit to be packed.
    """
    if chart.is_dir():
        archive = build_archive(chart, engine=engine, allow_drift=allow_drift, environment=environment)
        upload = prepare_upload(archive.data, created=utc_now())
    else:
        upload = _read_upload(chart)
    if sign:
        upload = replace(upload, provenance=sign_archive(upload.archive, sign, environment))
    with open_repository(to, environment) as repository:
        publication = publish_upload(repository, upload)
    return PublishedChart(upload.archive.name, upload.archive.version, upload.archive.identity, publication)


def utc_now() -> str:
    """Return the time in RFC 3339."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_upload(archive: Path) -> Upload:
    require_chart(archive)
    signature = archive.with_name(f"{archive.name}.prov")
    provenance = read_bytes(signature) if signature.is_file() else None
    return prepare_upload(read_bytes(archive), created=utc_now(), provenance=provenance)
