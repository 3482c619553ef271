"""Who may ask the console, and with which headers it answers. Pure.

Any page in the user's browser, and any program on the machine, can reach a port of loopback. So a request must carry
the name under which the console was opened (a page of a foreign name that resolves to loopback carries its own), a
session that was started with the code from the terminal or with a Kubernetes token, and, where it changes anything, the
console's own origin and a token of the page.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

BODY_LIMIT = 4096
"""Bytes of a form."""
VALUES_LIMIT = 256 * 1024
"""Bytes of a form with the values of a chart."""
TOKEN_LIMIT = 16 * 1024
"""Characters of a Kubernetes token; those with many groups have some 8,000."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""As RFC 6750 has it."""
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers would send `Origin: null` with the console's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def list_names(host: str, port: int) -> tuple[str, ...]:
    """Return the Host headers under which what listens there may be asked, the usual one first."""
    address = f"[{host}]" if ":" in host else host
    names = dict.fromkeys((address, "localhost"))
    return tuple(name if port == 80 else f"{name}:{port}" for name in names)


def parse_address(text: str) -> str:
    """Return the origin of an address at which browsers reach the console, as they write it. Raises ValueError."""
    parts = urlsplit(text.strip().lower())
    port, name = parts.port, parts.netloc.rpartition(":")[0] if parts.port is not None else parts.netloc
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(name):
        raise ValueError("expected https://NAME or http://localhost:PORT")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("the console needs the root of an address: expected no path, query or fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("tokens would cross the network in plain text: expected https://, or http:// with localhost")
    return f"{parts.scheme}://{name}" + ("" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}")


def name_of(origin: str) -> str:
    """Return the Host header of requests to an origin."""
    return origin.partition("://")[2]


def read_token(text: str) -> str:
    """Return the Kubernetes token that someone pasted, perhaps over several lines; empty where it can be none."""
    token = "".join(text.removeprefix("Bearer ").split())
    return token if len(token) <= TOKEN_LIMIT and _TOKEN.fullmatch(token) else ""


def refuse_host(header: str, names: Collection[str]) -> str:
    """Return why a request with this Host header is refused; empty where it is not."""
    if header.lower() in names:
        return ""
    return f"The console does not serve the address {header[:100]!r}. Open the address that it was started with."


def refuse_origin(headers: Mapping[str, str], origins: Collection[str]) -> str:
    """Return why a request that changes something is refused for where it comes from; empty where it is not."""
    origin = headers.get("origin", "")
    if origin in origins and name_of(origin) == headers.get("host", "").lower():
        return ""
    return "The request does not come from a page of this console."


def is_same(given: str, expected: str) -> bool:
    """Compare secrets in a time that says nothing about them."""
    return hmac.compare_digest(given.encode(), expected.encode())
