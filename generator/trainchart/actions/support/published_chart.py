"""Read a chart that a registry has, named as helm names it, with what is attached there about where it comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainchart.actions.support.repository_access import Address, open_repository, versions_command
from trainchart.archive.attestation import STATEMENT_TYPE, Origin, parse_statement
from trainchart.errors import PublishError, RepositoryNotFound
from trainchart.publish.io.oci import OciRepository
from trainchart.publish.oci_manifest import tag_version

_REFERENCE = re.compile(
    r"(?P<repository>oci://.+)/(?P<name>[^/:@\ud800-\udfff]+)(?=[:@])(?::(?P<tag>[^/:@\ud800-\udfff]+))?"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
"""Without halves of characters: they stand for bytes that are no UTF-8."""
_HINT = "expected oci://HOST/PATH/NAME:VERSION, or @sha256:DIGEST instead of :VERSION or after it"


@dataclass(frozen=True)
class RegistryChart:
    """A chart of a registry."""

    reference: str
    name: str
    version: str
    """As the reference names it; empty where it is named by digest alone."""
    digest: str
    """Of the manifest."""
    pinned: str
    """What names it for helm whatever becomes of its tag."""
    archive: bytes
    signature: bytes | None
    origins: tuple[Origin, ...]
    """What the attached statements of our kind say."""


def is_reference(text: str) -> bool:
    """Whether `text` names a chart in a registry, and no file."""
    return text.startswith("oci://")


def fetch_published(reference: str, *, plain_http: bool, environment: Mapping[str, str]) -> RegistryChart:
    """Return the chart at oci://HOST/PATH/NAME:VERSION, with @sha256:DIGEST in place of the version or behind it.

    Where there is a digest, the tag is not asked for: it may stand for another chart by now.

    Raises RepositoryNotFound where there is none, and another PublishError where the registry does not tell.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise PublishError(f"{reference} does not name a chart version", hint=_HINT)
    name, version = match["name"], tag_version(match["tag"] or "")
    address = Address(match["repository"], plain_http)
    with open_repository(address, environment) as repository:
        assert isinstance(repository, OciRepository)
        found = repository.fetch_reference(name, match["digest"] or match["tag"], reference)
        if found is None:
            raise RepositoryNotFound(f"{reference} is not there", hint=versions_command(name, address))
        attached = repository.read_attached(name, found.digest, STATEMENT_TYPE)
    try:
        origins = tuple(origin for origin in map(parse_statement, attached) if origin is not None)
    except ValueError as error:
        raise PublishError(f"{reference}: its provenance cannot be read: {error}") from error
    pinned = f"{match['repository']}/{name}@{found.digest}"
    return RegistryChart(reference, name, version, found.digest, pinned, found.data, found.provenance, origins)
