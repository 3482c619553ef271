"""The one way to the Kubernetes API server: requests, watches, and errors by what can be done about them.

http.client and ssl, because importing a client library takes a second or two beside starting TensorFlows
(docs/decisions/0008-run-controller.md). The token is read again for every request: Kubernetes replaces it hourly.

    ApiError                every one may pass: try again later
    ├── Unreachable         no answer, or one that broke off
    ├── TooLong             an answer of more bytes than its limit
    └── Refused             an answer with an error status
        ├── Unauthorized    401: the token is not accepted
        ├── Conflict        409: another client has written in the meantime
        ├── NotFound        404
        └── Gone            410: the resourceVersion is too old: list again
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Union
from urllib.parse import urlencode

from trainchart_runtime.contract import CONTROLLER_AGENT

REQUEST_SECONDS = 20.0
APPLY = "APPLY"
"""A PATCH by server-side apply, which makes an object that does not exist."""
_BODY_TYPES = {"PATCH": "application/merge-patch+json", APPLY: "application/apply-patch+yaml"}
_BODY_LIMIT = 300
_READ_AT_ONCE = 65536
_ANSWER_LIMIT = 16 * 1024 * 1024
"""Bytes of an answer: etcd stores objects of 1.5 MiB, which may have six times as many as JSON."""
_PAGE_LIMIT = 2 * 1024 * 1024
"""Bytes of a page with several objects: parsed, it may need twenty times as much, and the controller has 128 MiB."""
_EVENT_LIMIT = 4 * 1024 * 1024
"""Bytes of one event of a watch."""
_ERROR_LIMIT = 1024 * 1024
"""Bytes that are read of an answer with an error status."""
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A connection whose other end has silently gone is noticed after half a minute."""


class ApiError(Exception):
    """The API server did not do what it was asked for."""


class Unreachable(ApiError):
    """No answer came, or it broke off."""


class TooLong(ApiError):
    """The answer has more bytes than its limit."""


class Refused(ApiError):
    """The API server answered with an error status."""

    def __init__(self, message: str, status: int, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds that the server asks to wait; 0 where it does not."""


class Unauthorized(Refused):
    """401: the token is not accepted (any more)."""


class Conflict(Refused):
    """409: the object has changed since it was read."""


class NotFound(Refused):
    """404: there is no such object."""


class Gone(Refused):
    """410: the resourceVersion is too old for a watch, or a list's next page has expired."""


_BY_STATUS = {401: Unauthorized, 404: NotFound, 409: Conflict, 410: Gone}


class Listing(NamedTuple):
    """The objects of a list, parsed."""

    items: List[Any]
    version: str
    """resourceVersion to watch from."""


class Api:
    """One kept connection to the API server; not for several threads."""

    def __init__(self, host: str, port: int, service_account_dir: str) -> None:
        self._host = host
        self._port = port
        self._dir = service_account_dir
        self._kept: Optional[http.client.HTTPSConnection] = None

    def request(
        self, method: str, path: str, body: Optional[Mapping[str, Any]] = None, limit: int = _ANSWER_LIMIT
    ) -> Dict[str, Any]:
        """Return the JSON answer, of at most `limit` bytes; raises ApiError."""
        # A server may have closed the kept connection meanwhile. All our requests may be sent twice.
        if self._kept is not None:
            try:
                return self._exchange(self._kept, method, path, body, limit)
            except Unreachable:
                pass
        self._kept = self._connect(REQUEST_SECONDS)
        return self._exchange(self._kept, method, path, body, limit)

    def read_list(
        self, path: str, query: Mapping[str, Any], size: int, parse: Callable[[Mapping[str, Any]], Any], most: int = 0
    ) -> Listing:
        """Return what `parse` makes of each object of a list, without None; raises ApiError.

        A page has `size` objects, or fewer while they are large, and only one page is in memory at a time. At most
        `most` pages are read; 0 means all.
        """
        found: List[Any] = []
        asked, number, now = dict(query), 0, size
        while True:
            asked["limit"] = now
            try:
                metadata = self._read_page(f"{path}?{urlencode(asked)}", now, parse, found)
            except TooLong:
                if now == 1:
                    raise
                now = max(1, now // 5)
                continue
            number += 1
            # A token to continue with lasts for minutes only.
            now = min(size, 2 * now)
            asked["continue"] = metadata.get("continue") or ""
            if not asked["continue"] or number == most:
                return Listing(found, str(metadata.get("resourceVersion") or ""))

    def _read_page(
        self, path: str, size: int, parse: Callable[[Mapping[str, Any]], Any], found: List[Any]
    ) -> Mapping[str, Any]:
        """Add what `parse` makes of the objects of a page to `found` and return the page's metadata."""
        page = self.request("GET", path, limit=_PAGE_LIMIT if size > 1 else _ANSWER_LIMIT)
        parsed = (parse(item) for item in page.get("items") or ())
        found += [each for each in parsed if each is not None]
        return page.get("metadata") or {}

    def read_end(self, path: str, timeout_seconds: float, limit: int) -> bytes:
        """Return the last `limit` bytes of an answer that is no JSON, over a connection of its own; raises ApiError.

        What has not come after `timeout_seconds` is left out.
        """
        connection = self._connect(timeout_seconds)
        until = time.monotonic() + timeout_seconds
        end = bytearray()
        try:
            response = self._send(connection, "GET", path, None)
            while time.monotonic() < until:
                part = response.read1(_READ_AT_ONCE)
                if not part:
                    break
                end += part
                del end[:-limit]
            return bytes(end)
        except (OSError, http.client.HTTPException) as err:
            raise Unreachable(f"GET {path}: {err or type(err).__name__}") from err
        finally:
            connection.close()

    def watch(self, path: str, silence_seconds: float) -> Iterator[Dict[str, Any]]:
        """Yield watch events until the server ends the stream; raises ApiError, also after `silence_seconds`."""
        connection = self._connect(silence_seconds)
        try:
            response = self._send(connection, "GET", path, None)
            while True:
                line = response.readline(_EVENT_LIMIT + 1)
                if not line:
                    return
                if len(line) > _EVENT_LIMIT:
                    raise TooLong(f"the watch sent an event of more than {_EVENT_LIMIT} bytes")
                yield _parse(line)
        except (OSError, http.client.HTTPException) as err:
            raise Unreachable(f"the watch broke off: {err or type(err).__name__}") from err
        finally:
            connection.close()

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]],
        limit: int,
    ) -> Dict[str, Any]:
        try:
            response = self._send(connection, method, path, body)
            content = _read_most(response, limit)
            if len(content) > limit:
                raise TooLong(f"{method} {path}: the answer has more than {limit} bytes")
            if response.will_close:
                self._drop()
            return _parse(content)
        except Refused:
            raise
        except ApiError:
            self._drop()
            raise
        except (OSError, http.client.HTTPException) as err:
            self._drop()
            raise Unreachable(f"{method} {path}: {err or type(err).__name__}") from err

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _send(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Optional[Mapping[str, Any]]
    ) -> http.client.HTTPResponse:
        """Return the response of a request that succeeded, its body unread."""
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._read_token()}"}
        headers["User-Agent"] = CONTROLLER_AGENT
        if body is not None:
            headers["Content-Type"] = _BODY_TYPES.get(method, "application/json")
        connection.request(
            "PATCH" if method == APPLY else method, path, None if body is None else json.dumps(body).encode(), headers
        )
        response = connection.getresponse()
        if response.status >= 300:
            raise _refusal(response, f"{method} {path}")
        return response

    def _read_token(self) -> str:
        with open(os.path.join(self._dir, "token"), encoding="ascii") as file:
            return file.read().strip()

    def _connect(self, timeout_seconds: float) -> http.client.HTTPSConnection:
        # The certificates are read again as well, for a cluster whose authority was replaced.
        try:
            context = ssl.create_default_context(cafile=os.path.join(self._dir, "ca.crt"))
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout_seconds, context=context)
            connection.connect()
        except OSError as err:
            raise Unreachable(f"cannot connect to {self._host}:{self._port}: {err}") from err
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                connection.sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return connection


def _read_most(response: http.client.HTTPResponse, limit: int) -> bytearray:
    """Return the body, or its beginning, of a little more than `limit` bytes, where it is longer."""
    content = bytearray()
    while len(content) <= limit:
        part = response.read(_READ_AT_ONCE)
        if not part:
            break
        content += part
    return content


def _parse(content: Union[bytes, bytearray]) -> Dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as err:
        raise Unreachable(f"the answer is not JSON: {bytes(content[:_BODY_LIMIT])!r}") from err
    if not isinstance(document, dict):
        raise Unreachable(f"the answer is not a JSON object: {bytes(content[:_BODY_LIMIT])!r}")
    return document


def _refusal(response: http.client.HTTPResponse, asked: str) -> Refused:
    body = _read_most(response, _ERROR_LIMIT)
    try:
        words = str(json.loads(body)["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        words = body.decode("utf-8", "replace")
    retry_after = response.getheader("Retry-After", "")
    kind = _BY_STATUS.get(response.status, Refused)
    return kind(
        f"{asked}: {response.status} {words[:_BODY_LIMIT]}".strip(),
        response.status,
        float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0,
    )
