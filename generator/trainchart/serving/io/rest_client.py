"""Asks a model server over REST: one answer, or one error of ours."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2

from trainchart.errors import ToolError, UsageError
from trainchart.host.deadline import read_until, run_within
from trainchart.json_documents import parse_json
from trainchart.serving.request import MOST_VALUES

CONNECT_SECONDS = 10.0
_LARGEST_PORT = 65535
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of a prediction."""
_OTHER_LIMIT = 1024 * 1024
"""Bytes of any other answer, and of errors."""
_PASSWORD = re.compile(r"(//[^/@]*:)[^/@]*@")
_DONE = 200
_LONGEST_ERROR = 1000
"""Characters."""


@dataclass(frozen=True)
class Reply:
    """What the server has answered."""

    status: int
    text: str

    @property
    def is_done(self) -> bool:
        return self.status == _DONE

    def parse(self) -> Any:
        """Return the answer as JSON, in which servers write NaN and Infinity.

        Raises ValueError where it is none, or holds so many values that their objects would fill the memory.
        """
        if sum(map(self.text.count, ",[{")) > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values")
        try:
            return parse_json(self.text, takes_nan=True)
        except ValueError as error:
            raise ValueError("it is not JSON") from error

    @property
    def document(self) -> Any:
        """The answer as JSON; None where it is none."""
        try:
            return self.parse()
        except ValueError:
            return None

    @property
    def error(self) -> str:
        """What the server says is wrong, in one line; empty where it does not say."""
        document = self.document
        told = document.get("error") if isinstance(document, Mapping) else None
        line = " ".join(told.split()) if isinstance(told, str) else ""
        return line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"


class NoAnswer(ToolError):
    """The server does not answer at all."""


class ModelClient:
    """Speaks to the server at a base address, such as http://localhost:8501."""

    def __init__(self, url: str, seconds: float = 60.0) -> None:
        """Raises UsageError for an address that cannot be one of a model server."""
        self._base = url.rstrip("/")
        self.url = _PASSWORD.sub(r"\1***@", self._base)
        """As messages may show it."""
        self._seconds = seconds
        try:
            parsed = httpx2.URL(self._base)
        except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
            raise UsageError(f"--url: {self.url!r} is not an address: {error}") from error
        # The operating system would take only the last 16 bits of a larger port.
        is_port = parsed.port is None or 0 < parsed.port <= _LARGEST_PORT
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment or not is_port:
            raise UsageError(
                f"--url: {self.url!r} is not the address of a model server", hint="an example: http://localhost:8501"
            )
        # A proxy of the environment cannot reach this machine.
        self._trusts_environment = not _is_loopback(parsed.host)

    def read_model(self, model: str, part: str = "") -> Reply:
        """Return the status of a model, or a `part` of it, such as metadata."""
        return self.ask("GET", f"/v1/models/{quote(model, safe='')}{f'/{part}' if part else ''}")

    def predict(self, model: str, body: bytes) -> Reply:
        return self.ask("POST", f"/v1/models/{quote(model, safe='')}:predict", body, ANSWER_LIMIT)

    def ask(self, method: str, path: str, body: bytes | None = None, limit: int = _OTHER_LIMIT) -> Reply:
        """Return the answer, whatever its status; one that is no error may take `limit` bytes.

        Raises:
            NoAnswer: there is none.
            ToolError: it is too large.
        """
        try:
            return run_within(self._seconds, lambda end: self._exchange(method, path, body, limit, end))
        except (httpx2.TimeoutException, TimeoutError) as error:
            raise NoAnswer(f"{self.url} did not answer within {self._seconds:g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, UnicodeError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise NoAnswer(f"no model server answers at {self.url}: {reason}") from error

    def _exchange(self, method: str, path: str, body: bytes | None, limit: int, end: float) -> Reply:
        timeout = httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS)
        headers = {"User-Agent": "trainchart", "Accept-Encoding": "identity"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        with (
            httpx2.Client(timeout=timeout, headers=headers, trust_env=self._trusts_environment) as client,
            client.stream(method, f"{self._base}{path}", content=body) as response,
        ):
            content = bytearray()
            most = limit if response.status_code == _DONE else min(limit, _OTHER_LIMIT)
            for part in read_until(end, response.iter_raw()):
                content += part
                if len(content) > most:
                    raise ToolError(f"the answer of {self.url} is larger than {most} bytes")
            return Reply(response.status_code, content.decode(errors="replace"))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
