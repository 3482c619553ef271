"""Requests to an OCI registry, over the distribution API: log in where it asks, tell its answers apart.

What is stored there is decided by its callers: charts in oci.py, what is attached to them in referrers.py, images in
image.py.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlencode, urljoin

from trainchart.errors import PublishError, RepositoryNotFound
from trainchart.json_documents import parse_json
from trainchart.publish.io.http import Answer, HttpClient, refusal
from trainchart.publish.repository import sha256_digest

ANY_MANIFEST = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
)
"""What to accept: a registry answers 404 for a tag that is there, but of a type that was not asked for."""
PAGES_LIMIT = 1000
_LIST_BYTES = 64 * 1024 * 1024
_LIST_SECONDS = 600.0
"""A list that goes on for longer, in any of these, is taken for one without an end."""
_SHOWN = 60
"""Characters shown of what a registry says."""
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="?next"?')
_PARAMETER = re.compile(r'\b(\w+)="([^"]*)"', re.ASCII)


class Registry:
    """One registry; it remembers the last right that it was given."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._authorization = ""

    @property
    def base(self) -> str:
        """Return scheme, host and port."""
        return self._client.base

    def address(self, path: str, rest: str) -> str:
        """Return the address of something in the repository at `path`."""
        # An argument that is no UTF-8 is asked for as well: no registry has it.
        return f"{self.base}/v2/{quote(path.strip('/'), errors='surrogatepass')}/{rest}"

    def read_manifest(self, path: str, reference: str, said: str) -> tuple[str, bytes] | None:
        """Return digest and text of the manifest under a tag or digest, called `said`; None where it is not there.

        Raises PublishError where the text does not have the digest that is asked for, or that the registry announces.
        """
        url = self.address(path, f"manifests/{reference}")
        answer = self.ask("GET", url, f"read {said}", headers={"Accept": ANY_MANIFEST})
        if answer.status == 404:
            self.require_registry()
            return None
        if not answer.is_done:
            raise refusal(answer, f"read {said}", self.base)
        digest = sha256_digest(answer.body)
        announced = answer.headers.get("docker-content-digest", digest)
        if announced != digest:
            raise PublishError(f"{said} is damaged: the registry announces {announced}, but sends {digest}")
        # A tag has no colon.
        if ":" in reference and reference != digest:
            raise PublishError(
                f"{said} is damaged: {reference} was asked for, but the registry sends {digest}",
                hint="do not use it; report it to the registry's operator",
            )
        return digest, answer.body

    def read_blob(self, path: str, digest: str, size: int | None = None) -> bytes:
        """Return a blob, which is what its digest and, where it is known, its size say. Raises PublishError."""
        what = f"read {digest} of {path.rpartition('/')[2]}"
        answer = self.ask("GET", self.address(path, f"blobs/{digest}"), what)
        if not answer.is_done:
            raise refusal(answer, what, self.base)
        if sha256_digest(answer.body) != digest:
            raise PublishError(f"cannot {what}: the registry sends {sha256_digest(answer.body)}", hint="run it again")
        if size not in (None, len(answer.body)):
            raise PublishError(
                f"cannot {what}: it has {len(answer.body)} bytes, and its manifest says {size}",
                hint="Helm refuses it as well: publish it again under another version",
            )
        return answer.body

    def read_pages(self, url: str, what: str) -> Iterator[Answer]:
        """Yield the answers that a list comes in; the last one where the registry refuses to go on.

        Raises PublishError for a list that leads back to itself, or has no end.
        """
        asked: set[str] = set()
        size, end = 0, time.monotonic() + _LIST_SECONDS
        while url:
            if url in asked:
                raise PublishError(
                    f"cannot {what}: {self.base} redirects in a loop", hint="report it to the server's operator"
                )
            if len(asked) >= PAGES_LIMIT or size > _LIST_BYTES or time.monotonic() > end:
                raise PublishError(
                    f"cannot {what}: the list of {self.base} has not ended after {len(asked)} pages and {size} bytes",
                    hint="report it to the server's operator; if there really are that many entries, give the chart "
                    "its own repository",
                )
            asked.add(url)
            answer = self.ask("GET", url, what)
            size += len(answer.body)
            yield answer
            following = _NEXT.search(answer.headers.get("link", "")) if answer.is_done else None
            url = self._join(url, following[1], what) if following else ""

    def push_blob(self, path: str, content: bytes, what: str) -> None:
        """Put a blob into the repository at `path`, unless it is there. Raises PublishError."""
        digest = sha256_digest(content)
        if self.ask("HEAD", self.address(path, f"blobs/{digest}"), what).is_done:
            return
        uploads = self.address(path, "blobs/uploads/")
        start = self.ask("POST", uploads, what)
        if start.status != 202 or "location" not in start.headers:
            raise refusal(start, what, self.base)
        place = self._join(uploads, start.headers["location"], what)
        place += ("&" if "?" in place else "?") + urlencode({"digest": digest})
        done = self.ask("PUT", place, what, body=content, headers={"Content-Type": "application/octet-stream"})
        if not done.is_done:
            raise refusal(done, what, self.base)

    def push_manifest(self, path: str, reference: str, manifest: bytes, media_type: str, what: str) -> Answer:
        """Put a manifest under a tag or its digest; returns whatever the registry answers."""
        url = self.address(path, f"manifests/{reference}")
        return self.ask("PUT", url, what, body=manifest, headers={"Content-Type": media_type})

    def _join(self, url: str, further: str, what: str) -> str:
        """Return where the registry sends us. Raises PublishError where that is no address."""
        try:
            return urljoin(url, further)
        except ValueError as error:
            raise PublishError(
                f"cannot {what}: {self.base} names {further[:_SHOWN]!r}, which is not a valid address: {error}",
                hint="report it to the server's operator",
            ) from error

    def require_registry(self) -> None:
        """Tell a registry that lacks something from a server that is no registry."""
        answer = self.ask("GET", f"{self.base}/v2/", "reach the registry")
        if answer.status >= 500 or answer.status == 429:
            raise refusal(answer, "reach the registry", self.base)
        if not answer.is_done and answer.status != 401:
            raise RepositoryNotFound(
                f"there is no registry at {self.base} (it answers {answer.status})",
                hint="check host and port; for a repository with an index.yaml, use its https:// address",
            )

    def ask(
        self, method: str, url: str, what: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request, logging in where the registry asks for it; only it gets what it has given us.

        A server it redirects to (for a blob, the next page, an upload) is told no password, nor asked where to log in.
        """
        answer = self._send(method, url, what, body, headers)
        challenge = answer.headers.get("www-authenticate", "")
        if answer.status == 401 and answer.is_own and self._log_in(challenge, what):
            answer = self._send(method, url, what, body, headers)
        return answer

    def _send(self, method: str, url: str, what: str, body: bytes | None, headers: Mapping[str, str] | None) -> Answer:
        sent = dict(headers or {})
        if self._authorization and self._client.is_own(url):
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
        if not realm.startswith("https://") and not (realm.startswith("http://") and self.base.startswith("http://")):
            raise PublishError(f"cannot {what}: the registry redirects to log in at {realm!r}, which is not encrypted")
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
            grant = parse_json(answer.body)
            return f"Bearer {grant.get('token') or grant['access_token']}"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PublishError(f"cannot {what}: {realm} returns no token") from error
