"""A folder of a web server, written by WebDAV (RFC 4918): PUT, and LOCK where the server knows it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote, urljoin, urlsplit

from trainchart.errors import PublishError, RepositoryNotFound, RepositoryUnreachable
from trainchart.publish.io.http import Answer, HttpClient, refusal
from trainchart.publish.location import Location

LOCK_FILE = ".trainchart-lock"
"""An empty file that stays there; publishers lock it instead of the index, which readers must never find empty."""
LOCK_SECONDS = 120
_WAIT_SECONDS = 150.0
_PAUSE_SECONDS = 0.5
_LOCKED = 423
_WHOLE_ADDRESS = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_SENT_AS_WRITTEN = "/:?&=%+@~,;!$'()*"
"""Other characters of an address are escaped, as Helm escapes all but brackets."""
_ESCAPED_PART = re.compile("%(?:2e|2f|5c)", re.IGNORECASE)
_NO_LOCKS = (400, 403, 404, 405, 501)
_LOCK_BODY = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>'
    b"<D:locktype><D:write/></D:locktype><D:owner>trainchart publish</D:owner></D:lockinfo>\n"
)


class WebDavStore:
    """The files below one address."""

    def __init__(self, location: Location, client: HttpClient) -> None:
        self.url = location.url
        self._client = client
        self._base = f"{client.base}/{quote(location.path)}/" if location.path else f"{client.base}/"

    def read(self, reference: str) -> bytes | None:
        what = f"read {reference} of {self.url}"
        _require_same_as_helm(reference, what)
        try:
            url = urljoin(self._base, quote(reference, safe=_SENT_AS_WRITTEN))
            # Helm fails there; urljoin fills in the host of the index.
            url = "" if urlsplit(reference).scheme and not urlsplit(reference).hostname else url
        except ValueError:  # Half a character, which JSON can write, or a host that cannot be.
            url = ""
        if not url.startswith(("https://", "http://")) or (url.startswith("http://") and self._is_encrypted):
            raise PublishError(
                f"cannot {what}: the address must name a host and start with https:// (or http://, if the repository "
                "does)",
                hint="correct the address in the index",
            )
        answer = self._client.send("GET", url, what=what)
        if answer.status in (404, 410):
            return None
        if not answer.is_done:
            raise refusal(answer, what, self._client.base)
        return answer.body

    def list_archives(self) -> tuple[str, ...]:
        return ()  # servers without PROPFIND do not tell

    def write(self, name: str, content: bytes, *, is_new: bool = False) -> None:
        what = f"write {name} to {self.url}"
        headers = {"If-None-Match": "*"} if is_new else {}
        answer = self._client.send("PUT", urljoin(self._base, quote(name)), what=what, body=content, headers=headers)
        if answer.status == 412:
            raise PublishError(f"cannot {what}: another client has just written it", hint="run it again")
        if not answer.is_done:
            raise self._refusal(answer, what)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold an exclusive lock, which the server itself ends should we die; without one where it knows no locks."""
        token = self._lock()
        try:
            yield
        finally:
            # Where this fails the server ends the lock by itself, and what was published stays so.
            with suppress(PublishError):
                if token:
                    self._ask_lock("UNLOCK", {"Lock-Token": f"<{token}>"}, None)

    @property
    def _is_encrypted(self) -> bool:
        return self._client.base.startswith("https://")

    def _lock(self) -> str:
        end = time.monotonic() + _WAIT_SECONDS
        headers = {"Timeout": f"Second-{LOCK_SECONDS}", "Depth": "0", "Content-Type": "application/xml"}
        while True:
            answer = self._ask_lock("LOCK", headers, _LOCK_BODY)
            token = re.search(r"<([^>]+)>", answer.headers.get("lock-token", ""))
            if answer.is_done and token:
                return token[1]
            if answer.status in _NO_LOCKS or answer.is_done:
                return ""
            if answer.status != _LOCKED:
                raise self._refusal(answer, f"lock {self.url}")
            if time.monotonic() > end:
                raise RepositoryUnreachable(
                    f"{self.url} has been locked by another publisher for more than {_WAIT_SECONDS:.0f} seconds",
                    hint="run it again; the lock of a publisher that was killed expires",
                )
            time.sleep(_PAUSE_SECONDS)

    def _refusal(self, answer: Answer, what: str) -> PublishError:
        if answer.status == 409:
            hint = "create the folder on the server first"
            return RepositoryNotFound(f"cannot {what}: that folder does not exist", hint=hint)
        return refusal(answer, what, self._client.base)

    def _ask_lock(self, method: str, headers: dict[str, str], body: bytes | None) -> Answer:
        url = urljoin(self._base, LOCK_FILE)
        return self._client.send(method, url, what=f"lock {self.url}", headers=headers, body=body)


def _require_same_as_helm(reference: str, what: str) -> None:
    """Raise PublishError for an address of an index by which Helm asks for something else than we would."""
    path, mark, _ = reference.partition("?")
    if _WHOLE_ADDRESS.match(reference):
        # Our client resolves these, Helm does not.
        is_changed, how = bool({".", ".."} & {*path.split("/")}), "the URL without . and .. in its path"
    else:
        # Helm drops the query, and keeps both slashes.
        is_changed, how = bool(mark) or "//" in path, "the relative URL without ? and //"
    if found := _ESCAPED_PART.search(path):
        # Helm decodes it where another character of the URL must be escaped.
        is_changed, how = True, f"the URL without {found[0]}"
    if is_changed:
        what = f"cannot {what}: Helm may fetch a different file from that URL"
        raise PublishError(what, hint=f"correct the index: write {how}")
