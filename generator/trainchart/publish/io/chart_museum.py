"""Charts in ChartMuseum, or in a server with its API, such as the older Harbor.

The server makes the index. It refuses a version that is there with 409, unless its operator lets versions be
replaced; the caller looks afterwards in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from trainchart.errors import PublishError
from trainchart.json_documents import parse_json
from trainchart.publish.index import read_entry
from trainchart.publish.io.http import Answer, HttpClient, refusal
from trainchart.publish.location import Location
from trainchart.publish.repository import FetchedArchive, PublishedVersion, Upload, limit_provenance, sha256_digest

_CONFLICT = 409


class ChartMuseumRepository:
    """The charts of one (tenant of a) ChartMuseum."""

    def __init__(self, location: Location, client: HttpClient) -> None:
        self.url = location.url
        self._client = client
        tenant = f"/{quote(location.path)}" if location.path else ""
        self._api = f"{client.base}/api{tenant}/charts"
        self._files = f"{client.base}{tenant}/charts"

    def reference(self, name: str, version: str) -> str:
        return f"{self._files}/{_quote(f'{name}-{version}.tgz')}"

    def find_versions(self, name: str) -> tuple[str, ...]:
        return tuple(found.version for found in self.list_versions(name))

    def list_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        what = f"list the versions of {name}"
        answer = self._client.send("GET", f"{self._api}/{_quote(name)}", what=what)
        if self._is_absent(answer, what):
            return ()
        entries = self._parse(answer, what)
        if not isinstance(entries, list):
            raise self._nonsense(what)
        return tuple(read_entry(entry) for entry in entries if isinstance(entry, Mapping))

    def fetch(self, name: str, version: str) -> FetchedArchive | None:
        what = f"read {name} {version}"
        answer = self._client.send("GET", f"{self._api}/{_quote(name)}/{_quote(version)}", what=what)
        if self._is_absent(answer, what):
            return None
        entry = self._parse(answer, what)
        if not isinstance(entry, Mapping):
            raise self._nonsense(what)
        archive = self._client.send("GET", self.reference(name, version), what=what)
        if not archive.is_done:
            raise refusal(archive, what, self._client.base)
        digest, said = sha256_digest(archive.body), read_entry(entry).digest
        if said and said != digest:
            raise PublishError(f"{self.reference(name, version)} is damaged: listed as {said}, but it is {digest}")
        signature = f"{self.reference(name, version)}.prov"
        signed = self._client.send("GET", signature, what=what)
        if signed.status != 404 and not signed.is_done:
            raise refusal(signed, what, self._client.base)
        provenance = limit_provenance(signed.body if signed.is_done else None, signature)
        return FetchedArchive(archive.body, digest, provenance)

    def add(self, upload: Upload) -> str:
        archive = upload.archive
        what = f"publish {archive.name} {archive.version}"
        # Both at once: a version that is signed is never seen without its signature.
        files = {"chart": (archive.filename, archive.data)}
        if upload.provenance is not None:
            files["prov"] = (f"{archive.filename}.prov", upload.provenance)
        answer = self._client.send("POST", self._api, what=what, files=files)
        if not answer.is_done and answer.status != _CONFLICT:
            raise refusal(answer, what, self._client.base)
        return ""

    def _is_absent(self, answer: Answer, what: str) -> bool:
        """Tell a ChartMuseum that lacks something from a server without its API, whose 404 is no such JSON."""
        if answer.is_done:
            return False
        if answer.status == 404:
            try:
                if "error" in parse_json(answer.body):
                    return True
            except (ValueError, TypeError):
                pass
        raise refusal(answer, what, self._client.base)

    def _parse(self, answer: Answer, what: str) -> Any:
        try:
            return parse_json(answer.body)
        except ValueError as error:
            raise self._nonsense(what) from error

    def _nonsense(self, what: str) -> PublishError:
        return PublishError(
            f"cannot {what}: {self._client.base} does not respond like ChartMuseum",
            hint="if the repository is a folder with an index.yaml, leave out chartmuseum+",
        )


def _quote(word: str) -> str:
    # An argument that is no UTF-8, or half a character, which JSON can write, is asked for as well: no chart has it.
    return quote(word, errors="surrogatepass")
