"""Charts in an OCI registry, over the distribution API.

A push becomes visible by its last request, the manifest under the version's tag. Registries replace a tag
without a word and have no conditional writes, so the tag is looked at right before, and afterwards by the caller.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode, urljoin

from trainchart.chart_version import is_chart_version
from trainchart.errors import PublishError, RepositoryNotFound, RepositoryUnauthorized
from trainchart.publish.http import Answer, HttpClient, refusal
from trainchart.publish.location import Location
from trainchart.publish.oci_manifest import (
    MANIFEST_TYPE,
    Artifact,
    ManifestInfo,
    build_artifact,
    parse_manifest,
    tag_version,
    version_tag,
)
from trainchart.publish.repository import FetchedArchive, PublishedVersion, Upload, sha256_digest

_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_NEXT = re.compile(r'<([^>]*)>\s*;\s*rel="?next"?')
_TAGS_AT_ONCE = 1000


class OciRepository:
    """Charts below one path of a registry; each is a repository of its own there."""

    def __init__(self, location: Location, client: HttpClient) -> None:
        self.url = location.url
        self._client = client
        self._path = location.path
        self._authorization = ""

    def reference(self, name: str, version: str) -> str:
        return f"{self.url}/{name}:{version_tag(version)}"

    def find_versions(self, name: str) -> tuple[str, ...]:
        return tuple(filter(is_chart_version, map(tag_version, self._list_tags(name))))

    def list_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        found = [self._describe(name, version) for version in self.find_versions(name)]
        return tuple(version for version in found if version is not None)

    def fetch(self, name: str, version: str) -> FetchedArchive | None:
        manifest = self._read_manifest(name, version)
        if manifest is None:
            return None
        digest, info = manifest
        provenance = self._read_blob(name, info.provenance) if info.provenance else None
        return FetchedArchive(self._read_blob(name, info.chart), digest, provenance)

    def add(self, upload: Upload) -> None:
        name, artifact = upload.archive.name, build_artifact(upload)
        for digest, content in artifact.blobs.items():
            self._push_blob(name, digest, content)
        if not self._has_tag(name, artifact.tag):
            self._push_manifest(name, artifact)

    def _push_manifest(self, name: str, artifact: Artifact) -> None:
        what = f"tag {name} with {artifact.tag}"
        url = self._address(name, f"manifests/{artifact.tag}")
        answer = self._ask("PUT", url, what, body=artifact.manifest, headers={"Content-Type": MANIFEST_TYPE})
        if answer.is_done:
            return
        error = refusal(answer, what, self._client.base)
        # A registry whose tags are immutable says so in words of its own; what is there now tells.
        if isinstance(error, RepositoryUnauthorized) or answer.status >= 500 or not self._has_tag(name, artifact.tag):
            raise error

    def _push_blob(self, name: str, digest: str, content: bytes) -> None:
        what = f"push a part of {name}"
        if self._ask("HEAD", self._address(name, f"blobs/{digest}"), what).is_done:
            return
        start = self._ask("POST", self._address(name, "blobs/uploads/"), what)
        if start.status != 202 or "location" not in start.headers:
            raise refusal(start, what, self._client.base)
        place = urljoin(self._address(name, "blobs/uploads/"), start.headers["location"])
        place += ("&" if "?" in place else "?") + urlencode({"digest": digest})
        headers = {"Content-Type": "application/octet-stream"}
        done = self._ask("PUT", place, what, body=content, headers=headers)
        if not done.is_done:
            raise refusal(done, what, self._client.base)

    def _has_tag(self, name: str, tag: str) -> bool:
        what = f"look for {name}:{tag}"
        answer = self._ask("HEAD", self._address(name, f"manifests/{tag}"), what, headers={"Accept": MANIFEST_TYPE})
        if answer.is_done or answer.status == 404:
            return answer.is_done
        raise refusal(answer, what, self._client.base)

    def _describe(self, name: str, version: str) -> PublishedVersion | None:
        manifest = self._read_manifest(name, version)
        if manifest is None:  # deleted since it was listed
            return None
        digest, info = manifest
        try:
            chart = json.loads(self._read_blob(name, info.config))
            is_deprecated = chart.get("deprecated") is True
        except (ValueError, AttributeError) as error:
            raise PublishError(f"{self.reference(name, version)} is no Helm chart: its config is no JSON") from error
        return PublishedVersion(version, digest, info.created, info.identity, is_deprecated)

    def _read_manifest(self, name: str, version: str) -> tuple[str, ManifestInfo] | None:
        reference = self.reference(name, version)
        url = self._address(name, f"manifests/{version_tag(version)}")
        answer = self._ask("GET", url, f"read {reference}", headers={"Accept": MANIFEST_TYPE})
        if answer.status == 404:
            self._require_registry()
            return None
        if not answer.is_done:
            raise refusal(answer, f"read {reference}", self._client.base)
        digest = sha256_digest(answer.body)
        said = answer.headers.get("docker-content-digest", digest)
        if said != digest:
            raise PublishError(f"{reference} is damaged: the registry says {said}, and sends {digest}")
        return digest, parse_manifest(answer.body, reference)

    def _read_blob(self, name: str, digest: str) -> bytes:
        what = f"read {digest} of {name}"
        answer = self._ask("GET", self._address(name, f"blobs/{digest}"), what)
        if not answer.is_done:
            raise refusal(answer, what, self._client.base)
        if sha256_digest(answer.body) != digest:
            raise PublishError(f"cannot {what}: the registry sends {sha256_digest(answer.body)}", hint="run it again")
        return answer.body

    def _list_tags(self, name: str) -> list[str]:
        what = f"list the versions of {name}"
        url = self._address(name, f"tags/list?n={_TAGS_AT_ONCE}")
        tags: list[str] = []
        while url:
            answer = self._ask("GET", url, what)
            if answer.status == 404:
                self._require_registry()
                return []
            if not answer.is_done:
                raise refusal(answer, what, self._client.base)
            try:
                tags += [str(tag) for tag in json.loads(answer.body)["tags"] or ()]
            except (ValueError, KeyError, TypeError) as error:
                raise PublishError(f"cannot {what}: {self._client.base} does not answer like a registry") from error
            following = _NEXT.search(answer.headers.get("link", ""))
            url = urljoin(url, following[1]) if following else ""
        return tags

    def _require_registry(self) -> None:
        """Tell a registry that has no such chart from something that is no registry."""
        answer = self._ask("GET", f"{self._client.base}/v2/", "reach the registry")
        if answer.status >= 500 or answer.status == 429:
            raise refusal(answer, "reach the registry", self._client.base)
        if not answer.is_done and answer.status != 401:
            raise RepositoryNotFound(
                f"there is no registry at {self._client.base} (it answers {answer.status})",
                hint="check host and port; a repository with an index.yaml has an address with https://",
            )

    def _address(self, name: str, rest: str) -> str:
        path = quote(f"{self._path}/{name}".strip("/"))
        return f"{self._client.base}/v2/{path}/{rest}"

    def _ask(
        self, method: str, url: str, what: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request, logging in where the registry asks for it; only it gets what it has given us."""
        answer = self._send(method, url, what, body, headers)
        challenge = answer.headers.get("www-authenticate", "")
        if answer.status == 401 and self._log_in(challenge, what):
            answer = self._send(method, url, what, body, headers)
        return answer

    def _send(self, method: str, url: str, what: str, body: bytes | None, headers: Mapping[str, str] | None) -> Answer:
        sent = dict(headers or {})
        if self._authorization and url.startswith(f"{self._client.base}/"):
            sent["Authorization"] = self._authorization
        return self._client.send(method, url, what=what, headers=sent, body=body, with_password=False)

    def _log_in(self, challenge: str, what: str) -> bool:
        """Do what a WWW-Authenticate header asks for; False where there is nothing (more) to try."""
        scheme, _, rest = challenge.partition(" ")
        before = self._authorization
        if scheme.lower() == "basic":
            self._authorization = self._basic()
        elif scheme.lower() == "bearer":
            self._authorization = self._fetch_token(dict(_PARAMETER.findall(rest)), what)
        return self._authorization not in ("", before)

    def _basic(self) -> str:
        known = self._client.credentials
        if known is None:
            return ""
        return "Basic " + base64.b64encode(f"{known.username}:{known.password}".encode()).decode()

    def _fetch_token(self, asked: Mapping[str, str], what: str) -> str:
        realm = asked.get("realm", "")
        if not realm.startswith("https://") and not (
            realm.startswith("http://") and self._client.base.startswith("http://")
        ):
            raise PublishError(f"cannot {what}: the registry sends us to log in at {realm!r}, which is not encrypted")
        query = urlencode({key: asked[key] for key in ("service", "scope") if asked.get(key)})
        basic = self._basic()
        answer = self._client.send(
            "GET",
            f"{realm}{'&' if '?' in realm else '?'}{query}",
            what=f"log in at {realm}",
            headers={"Authorization": basic} if basic else {},
            with_password=False,
        )
        if not answer.is_done:
            raise refusal(answer, f"log in at {realm}", realm)
        try:
            told = json.loads(answer.body)
            return f"Bearer {told.get('token') or told['access_token']}"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PublishError(f"cannot {what}: {realm} gives no token") from error
