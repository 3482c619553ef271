"""Charts in an OCI registry, over the distribution API; who logs in there is registry.py.

A push becomes visible by its last request, the manifest under the version's tag. Registries replace a tag
silently and have no conditional writes, so the tag is looked at right before, and afterwards by the caller.
"""

from __future__ import annotations

from trainchart.chart_version import is_chart_version
from trainchart.errors import PublishError, RepositoryUnauthorized
from trainchart.json_documents import parse_json
from trainchart.publish.io.http import HttpClient, refusal
from trainchart.publish.io.referrers import attach, read_attached
from trainchart.publish.io.registry import ANY_MANIFEST, Registry
from trainchart.publish.location import Location
from trainchart.publish.oci_manifest import (
    MANIFEST_TYPE,
    Artifact,
    ManifestInfo,
    build_artifact,
    build_owners,
    describe_upload,
    parse_manifest,
    tag_version,
    version_tag,
)
from trainchart.publish.repository import FetchedArchive, PublishedVersion, Upload, limit_provenance

_TAGS_AT_ONCE = 1000


class OciRepository:
    """Charts below one path of a registry; each is a repository of its own there."""

    def __init__(self, location: Location, client: HttpClient) -> None:
        self.url = location.url
        self._registry = Registry(client)
        self._path = location.path

    def reference(self, name: str, version: str) -> str:
        return f"{self.url}/{name}:{version_tag(version)}"

    def find_versions(self, name: str) -> tuple[str, ...]:
        # A registry may list a tag more than once.
        return tuple(filter(is_chart_version, map(tag_version, dict.fromkeys(self._list_tags(name)))))

    def list_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        found = [self._describe(name, version) for version in self.find_versions(name)]
        return tuple(version for version in found if version is not None)

    def fetch(self, name: str, version: str) -> FetchedArchive | None:
        return self.fetch_reference(name, version_tag(version), self.reference(name, version))

    def fetch_reference(self, name: str, reference: str, said: str) -> FetchedArchive | None:
        """Return the chart under a tag or digest, called `said`; None where it is not there."""
        manifest = self._read_manifest(name, reference, said)
        if manifest is None:
            return None
        digest, info = manifest
        provenance = self._read_blob(name, info, info.provenance) if info.provenance else None
        limit_provenance(provenance, f"the .prov file of {said}")
        return FetchedArchive(self._read_blob(name, info, info.chart), digest, provenance)

    def read_attached(self, name: str, digest: str, media_type: str) -> tuple[bytes, ...]:
        """Return what is attached to the manifest of a chart, of one type."""
        return read_attached(self._registry, self._repository(name), digest, media_type)

    def add(self, upload: Upload) -> str:
        name, artifact = upload.archive.name, build_artifact(upload)
        path = self._repository(name)
        for content in artifact.blobs.values():
            self._registry.push_blob(path, content, f"push a part of {name}")
        if self._has_tag(name, artifact.tag):
            return ""
        # Before the tag: a reader who sees the version sees where it comes from.
        refused = attach(self._registry, path, artifact.manifest, describe_upload(upload, artifact))
        if not self._has_tag(name, artifact.tag):
            self._push_manifest(name, artifact)
        return refused

    def put_owners(self, name: str, content: bytes) -> None:
        """Put what says to Artifact Hub whose a chart is beside its versions, in place of what may be there."""
        artifact, path, what = build_owners(content), self._repository(name), f"publish the owner of {name}"
        there = self._registry.read_manifest(path, artifact.tag, what)
        if there is not None and there[1] == artifact.manifest:
            return
        for blob in artifact.blobs.values():
            self._registry.push_blob(path, blob, what)
        answer = self._registry.push_manifest(path, artifact.tag, artifact.manifest, MANIFEST_TYPE, what)
        if not answer.is_done:
            raise refusal(answer, what, self._registry.base)

    def _push_manifest(self, name: str, artifact: Artifact) -> None:
        what = f"tag {name} with {artifact.tag}"
        answer = self._registry.push_manifest(
            self._repository(name), artifact.tag, artifact.manifest, MANIFEST_TYPE, what
        )
        if answer.is_done:
            return
        error = refusal(answer, what, self._registry.base)
        # A registry whose tags are immutable says so in words of its own; what is there now tells.
        if isinstance(error, RepositoryUnauthorized) or answer.status >= 500 or not self._has_tag(name, artifact.tag):
            raise error

    def _has_tag(self, name: str, tag: str) -> bool:
        what = f"look for {name}:{tag}"
        answer = self._registry.ask(
            "HEAD", self._address(name, f"manifests/{tag}"), what, headers={"Accept": ANY_MANIFEST}
        )
        if answer.is_done or answer.status == 404:
            return answer.is_done
        raise refusal(answer, what, self._registry.base)

    def _describe(self, name: str, version: str) -> PublishedVersion | None:
        manifest = self._read_manifest(name, version_tag(version), self.reference(name, version))
        if manifest is None:  # deleted since it was listed
            return None
        digest, info = manifest
        try:
            chart = parse_json(self._read_blob(name, info, info.config))
            is_deprecated = chart.get("deprecated") is True
        except (ValueError, AttributeError) as error:
            raise PublishError(
                f"{self.reference(name, version)} is not a Helm chart: its config is not JSON"
            ) from error
        return PublishedVersion(version, digest, info.created, info.identity, is_deprecated)

    def _read_manifest(self, name: str, reference: str, said: str) -> tuple[str, ManifestInfo] | None:
        found = self._registry.read_manifest(self._repository(name), reference, said)
        return None if found is None else (found[0], parse_manifest(found[1], said))

    def _read_blob(self, name: str, info: ManifestInfo, digest: str) -> bytes:
        return self._registry.read_blob(self._repository(name), digest, info.sizes[digest])

    def _list_tags(self, name: str) -> list[str]:
        what = f"list the versions of {name}"
        tags: list[str] = []
        for answer in self._registry.read_pages(self._address(name, f"tags/list?n={_TAGS_AT_ONCE}"), what):
            if answer.status == 404:
                self._registry.require_registry()
                return []
            if not answer.is_done:
                raise refusal(answer, what, self._registry.base)
            try:
                tags += [str(tag) for tag in parse_json(answer.body)["tags"] or ()]
            except (ValueError, KeyError, TypeError) as error:
                raise PublishError(f"cannot {what}: {self._registry.base} does not respond like a registry") from error
        return tags

    def _address(self, name: str, rest: str) -> str:
        return self._registry.address(self._repository(name), rest)

    def _repository(self, name: str) -> str:
        return f"{self._path}/{name}".strip("/")
