"""What a chart repository is to the rest of trainchart, and the rule that a published version never changes.

Every kind of repository keeps the same contract; tests/contract/test_repositories.py asks it of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from trainchart.archive.chart_file import parse_chart_file
from trainchart.archive.chart_metadata import read_metadata
from trainchart.archive.pack import ChartArchive, open_archive
from trainchart.archive.provenance import PROVENANCE_LIMIT
from trainchart.archive.read import parse_archive
from trainchart.errors import Problem, PublishError, ToolError, VersionConflict

OWNERS_FILE = "artifacthub-repo.yml"
"""Says to Artifact Hub whose repository this is."""


@dataclass(frozen=True)
class PublishedVersion:
    """A version as its repository lists it; texts are empty where the repository does not tell."""

    version: str
    digest: str
    """What a client can pin: of the manifest in a registry, of the archive elsewhere; `sha256:…`."""
    created: str = ""
    identity: str = ""
    is_deprecated: bool = False


@dataclass(frozen=True)
class FetchedArchive:
    """The bytes of a published archive, and the digest as in PublishedVersion."""

    data: bytes
    digest: str
    provenance: bytes | None = None


@dataclass(frozen=True)
class Upload:
    """A chart archive on its way into a repository."""

    archive: ChartArchive
    chart: Mapping[str, Any]
    """Chart.yaml of the archive, as Helm reads it: what an index would give another meaning is left out."""
    created: str
    """When it is published, in RFC 3339; used where the archive does not say when it was made."""
    provenance: bytes | None = None
    """The .prov file that signs exactly the archive's bytes."""


@dataclass(frozen=True)
class Publication:
    """What became of an upload."""

    is_new: bool
    digest: str
    reference: str
    """What `helm pull` or `helm install` takes."""
    is_signed: bool = False
    """A .prov file is there; an earlier publication may have had none."""
    refused: str = ""
    """Why the repository has not taken what says where the chart comes from; empty where it has, or was not asked."""
    other_build: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Build annotations of the published archive that differ: what it says, and what the upload says."""


class Repository(Protocol):
    """A place that charts are published to and read from; what goes wrong is a PublishError of the kind that fits."""

    @property
    def url(self) -> str:
        """Return the address as users write it."""

    def reference(self, name: str, version: str) -> str:
        """Return what names one version for `helm pull` or for a person."""

    def find_versions(self, name: str) -> tuple[str, ...]:
        """Return which versions are published of the chart `name`, in no order, in as few requests as there can be."""

    def list_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        """Return what is published of the chart `name`, in no order; nothing where it is not there."""

    def fetch(self, name: str, version: str) -> FetchedArchive | None:
        """Return a published version, its digest verified; None where the repository answers that it has none."""

    def add(self, upload: Upload) -> str:
        """Make a version visible in one last step; leave alone what is there, the caller looks afterwards.

        A publisher that is cut off before that step can run it again. Of two callers at once exactly one wins where the
        repository has a way to decide; docs/publishing.md says which have. Returns why the repository does not take
        what says where the chart comes from; empty where it does, or where there is no place for that.
        """


def sha256_digest(data: bytes) -> str:
    """Return the digest of `data` as registries write it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def limit_provenance(provenance: bytes | None, where: str) -> bytes | None:
    """Return a .prov file that was read from `where`. Raises PublishError where it is too large to be one."""
    if provenance is not None and len(provenance) > PROVENANCE_LIMIT:
        raise PublishError(
            f"{where} is larger than {PROVENANCE_LIMIT // 1024**2} MiB",
            hint="a .prov file holds only Chart.yaml, the archive's digest and a signature: check what was uploaded",
        )
    return provenance


def prepare_upload(data: bytes, *, created: str, provenance: bytes | None = None) -> Upload:
    """Return the upload of the archive `data`. Raises ToolError where it is none."""
    chart = parse_chart_file(parse_archive(data).files)
    return Upload(open_archive(data), read_metadata(chart.data), created, provenance)


def publish_upload(repository: Repository, upload: Upload) -> Publication:
    """Publish an archive, unless the very same content already exists, which is success too.

    Raises what find_publication and add_upload raise.
    """
    return find_publication(repository, upload) or add_upload(repository, upload)


def find_publication(repository: Repository, upload: Upload) -> Publication | None:
    """Return what is published of an upload already; None where its version is free.

    Raises VersionConflict where the version has other content.
    """
    archive = upload.archive
    there = repository.fetch(archive.name, archive.version)
    if there is None:
        return None
    reference = repository.reference(archive.name, archive.version)
    published = require_same(reference, there, archive)
    signed = there.provenance is not None
    return Publication(False, there.digest, reference, signed, other_build=_compare_builds(published, archive))


def add_upload(repository: Repository, upload: Upload) -> Publication:
    """Publish an archive whose version is free.

    Raises VersionConflict where another publisher was faster, and PublishError where the repository takes the archive
    but does not give it back.
    """
    refused = repository.add(upload)
    done = find_publication(repository, upload)
    if done is None:
        reference = repository.reference(upload.archive.name, upload.archive.version)
        raise PublishError(f"{reference} was accepted, but cannot be read back", hint="run it again; that is safe")
    return replace(done, is_new=True, refused=refused)


def require_same(reference: str, there: FetchedArchive, archive: ChartArchive) -> ChartArchive:
    """Return the published archive. Raises VersionConflict, with both identities, if its content differs."""
    try:
        published = open_archive(there.data)
    except ToolError as error:
        raise PublishError(f"{reference} is published, but is not a chart: {error.message}", hint=error.hint) from error
    if published.identity != archive.identity:
        raise VersionConflict(
            f"{reference} is published with different content",
            hint="published versions are immutable: raise version in the model spec, run trainchart generate, "
            "and publish that chart",
            problems=(Problem(f"published sha256:{published.identity}, here sha256:{archive.identity}"),),
        )
    return published


def _compare_builds(published: ChartArchive, archive: ChartArchive) -> dict[str, tuple[str, str]]:
    """Return the build annotations that differ, empty where one is missing."""
    every = sorted({*published.build, *archive.build})
    builds = {key: (published.build.get(key, ""), archive.build.get(key, "")) for key in every}
    return {key: (there, here) for key, (there, here) in builds.items() if there != here}
