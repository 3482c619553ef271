"""HTTP to chart repositories: one answer or one error of ours. Owner of httpx2 for publishing.

What a server may answer in good faith (not there, exists already) is a value; no answer, no permission and
nonsense are errors of different kinds. Only a server that says when to come back is asked again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

import httpx2

from trainchart.errors import (
    PublishError,
    RepositoryForbidden,
    RepositoryNotFound,
    RepositoryUnauthorized,
    RepositoryUnreachable,
)
from trainchart.host.deadline import read_until, run_within
from trainchart.placeholder import placeholder_hint
from trainchart.publish.credentials import Credentials

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
ANSWER_SECONDS = 300.0
"""An answer must be whole within it, however slowly it drips; tries and redirects included."""
ALL_SECONDS = 900.0
"""All answers of a server together: it may list any number of things that are then asked for one by one."""
BODY_LIMIT = 256 * 1024 * 1024
"""Bytes of an answer; Helm itself reads indexes of this size no more."""
_NO_TLS = "WRONG_VERSION_NUMBER"
"""What TLS says of an answer in plain HTTP."""
_REDIRECTS = 10
_TRIES = 4
_LONGEST_WAIT_SECONDS = 30.0
_TEXT_LIMIT = 300
_HOST_HINT = "check the name of the host: letters, digits and dashes, 1 to 63 characters between dots"
_LOGIN_HINT = (
    "log in with helm registry login (oci://) or helm repo add --username (https://), or set TRAINCHART_USERNAME and "
    "TRAINCHART_PASSWORD"
)


@dataclass(frozen=True)
class Answer:
    """Status, headers and the whole body."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = field(repr=False)
    is_own: bool = True
    """It comes from the server that was meant, and not from one that this has sent us to."""

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 300


class HttpClient:
    """Speaks to one server; `authorization`, where set, goes to that server alone."""

    def __init__(self, base: str, credentials: Credentials | None = None) -> None:
        self.base = base
        self.credentials = credentials
        try:
            self._origin = _origin(base)
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise PublishError(f"{base} is not an address: {error}", hint=_HOST_HINT) from error
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        # An archive is gzip by itself; a server that says so in Content-Encoding must not have it unpacked on the way.
        headers = {"User-Agent": "trainchart", "Accept-Encoding": "identity"}
        self._client = httpx2.Client(timeout=timeout, headers=headers)
        self._seconds_left = ALL_SECONDS

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def send(
        self,
        method: str,
        url: str,
        *,
        what: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        with_password: bool = True,
    ) -> Answer:
        """Return the server's answer, whatever its status; `what` completes "cannot …" in errors.

        Redirects of reading requests are followed, without the password to other servers, and never from a server that
        is spoken to with encryption to an address without. Raises RepositoryUnreachable where no answer comes, or where
        the server still asks for patience in the end, or has taken ALL_SECONDS for its answers, and PublishError for
        such an address.
        """
        began = time.monotonic()
        end = began + min(ANSWER_SECONDS, self._seconds_left)
        try:
            for attempt in range(_TRIES):
                answer = self._send_once(method, url, what, headers or {}, body, files, with_password, end)
                wait = _wait_seconds(answer)
                if wait is None or attempt == _TRIES - 1:
                    return answer
                time.sleep(wait)
        finally:
            self._seconds_left -= time.monotonic() - began
        raise AssertionError("the loop returns")

    def _send_once(
        self,
        method: str,
        url: str,
        what: str,
        headers: Mapping[str, str],
        body: bytes | None,
        files: Mapping[str, tuple[str, bytes]] | None,
        with_password: bool,
        end: float,
    ) -> Answer:
        self._require_encryption(url, what)
        try:
            auth = self._basic_auth(url) if with_password else None
            request = self._client.build_request(method, url, headers=dict(headers), content=body, files=files)
            if not request.url.host:
                raise httpx2.InvalidURL("the address has no host")
            response, content = run_within(end - time.monotonic(), lambda end: self._exchange(request, auth, what, end))
        except httpx2.TimeoutException as error:
            raise self._unreachable(what, "did not respond in time", url) from error
        except TimeoutError as error:  # of run_within: it may have sent something all the time
            raise self._unreachable(what, self._describe_end(), url) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, UnicodeError) as error:
            # UnicodeError: a name that no host can have.
            raise self._unreachable(what, _shorten(str(error)) or type(error).__name__, url) from error
        lowered = {key.lower(): value for key, value in response.headers.items()}
        return Answer(response.status_code, lowered, content, self.is_own(str(response.url)))

    def _describe_end(self) -> str:
        """Return which of the limits on its time a server has reached."""
        if self._seconds_left < ANSWER_SECONDS:
            return f"did not complete all its answers within {ALL_SECONDS:g} seconds"
        return f"did not complete its answer within {ANSWER_SECONDS:g} seconds"

    def _exchange(
        self, request: httpx2.Request, auth: httpx2.Auth | None, what: str, end: float
    ) -> tuple[httpx2.Response, bytes]:
        """Return the answer to a request, redirects followed, and its body."""
        response = self._client.send(request, stream=True, auth=auth)
        if request.method in ("GET", "HEAD"):
            response = self._follow(response, what)
        try:
            return response, self._read_body(response, what, end)
        finally:
            response.close()

    def _follow(self, response: httpx2.Response, what: str) -> httpx2.Response:
        """Return the answer at the end of a response's redirects."""
        for _ in range(_REDIRECTS):
            if response.next_request is None:
                return response
            response.close()
            self._require_encryption(str(response.next_request.url), what)
            response = self._client.send(response.next_request, stream=True)
        response.close()
        raise PublishError(f"cannot {what}: {self.base} redirects in a loop", hint="report it to the server's operator")

    def _require_encryption(self, url: str, what: str) -> None:
        """Refuse an address without encryption that a server with encryption has given, whatever it is for."""
        if self.base.startswith("https://") and not url.lower().startswith("https://"):
            raise PublishError(
                f"cannot {what}: {self.base} redirects to {_shorten(url)}, which is not encrypted",
                hint="use an address that stays on https, or --plain-http for no encryption at all",
            )

    def is_own(self, url: str) -> bool:
        """Tell whether an address is one of the server that this client is for. Raises nothing: what is none is not."""
        with suppress(httpx2.InvalidURL, UnicodeError):
            return _origin(url) == self._origin
        return False

    def _basic_auth(self, url: str) -> httpx2.Auth | None:
        if self.credentials is None or not self.is_own(url):
            return None
        return httpx2.BasicAuth(self.credentials.username, self.credentials.password)

    def _read_body(self, response: httpx2.Response, what: str, end: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in read_until(end, response.iter_raw()):
            size += len(part)
            if size > BODY_LIMIT:
                raise PublishError(f"cannot {what}: {self.base} answers with more than {BODY_LIMIT} bytes")
            parts.append(part)
        return b"".join(parts)

    def _unreachable(self, what: str, why: str, url: str) -> RepositoryUnreachable:
        hint = "it is not known what is published there; check the address and the network, then run it again"
        if _NO_TLS in why:
            hint = "it seems to speak HTTP without encryption: --plain-http, or --insecure-registry HOST for images"
        hint = placeholder_hint(self.base) or hint
        # An index and a registry may name addresses of other servers.
        server = self.base if self.is_own(url) else _server_of(url)
        return RepositoryUnreachable(f"cannot {what}: {server}: {why}", hint=hint)


def refusal(answer: Answer, what: str, server: str) -> PublishError:
    """Return the error that an answer stands for which is none of those expected."""
    said = _shorten(answer.body)
    message = f"cannot {what}: {server} answers {answer.status}" + (f": {said}" if said else "")
    if 300 <= answer.status < 400:
        return PublishError(
            message, hint=f"it has moved to {answer.headers.get('location', 'nowhere')}: use that address"
        )
    if answer.status == 401:
        return RepositoryUnauthorized(message, hint=_LOGIN_HINT)
    if answer.status == 403:
        return RepositoryForbidden(message, hint="ask for permission to do this, or log in as a user who has it")
    if answer.status in (404, 405, 501):
        return RepositoryNotFound(
            message, hint="check the address: does it have this kind of repository, and this path?"
        )
    if answer.status == 413:
        return PublishError(message, hint="let the server accept larger uploads; nginx: client_max_body_size")
    if answer.status == 429 or answer.status >= 500:
        return RepositoryUnreachable(message, hint="run it again; nothing was partially published")
    return PublishError(message)


def _wait_seconds(answer: Answer) -> float | None:
    """Return how long the server asks us to wait; None where it does not, or asks for too much."""
    if answer.status not in (429, 503):
        return None
    with suppress(KeyError, ValueError):
        seconds = float(answer.headers["retry-after"])
        return seconds if 0 <= seconds <= _LONGEST_WAIT_SECONDS else None
    return None


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx2.URL(url)
    return parsed.scheme, parsed.host, parsed.port


def _server_of(url: str) -> str:
    """Return what an error may show of an address: its path and query may hold a password."""
    with suppress(httpx2.InvalidURL, UnicodeError):
        parsed = httpx2.URL(url)
        return f"{parsed.scheme}://{parsed.netloc.decode()}"
    return "not an address"


def _shorten(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text[: 4 * _TEXT_LIMIT].decode(errors="replace")
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _TEXT_LIMIT else f"{line[:_TEXT_LIMIT]}…"
