"""A folder of a web server, written by WebDAV (RFC 4918): PUT, and LOCK where the server knows it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote, urljoin

from trainchart.errors import PublishError, RepositoryNotFound, RepositoryUnreachable
from trainchart.publish.io.http import Answer, HttpClient, refusal
from trainchart.publish.location import Location

LOCK_FILE = ".trainchart-lock"
"""An empty file that stays there; publishers lock it instead of the index, which readers must never find empty."""
LOCK_SECONDS = 120
_WAIT_SECONDS = 150.0
_PAUSE_SECONDS = 0.5
_LOCKED = 423
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
        url = urljoin(self._base, reference)
        if url.startswith("http://") and self._client.base.startswith("https://"):
            raise PublishError(f"cannot {what}: that address is not encrypted", hint="correct the address in the index")
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
