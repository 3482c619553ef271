"""Who may ask the console, and with which headers it answers. Pure.

Any page in the user's browser, and any program on the machine, can reach a port of loopback. So a request must carry
the name under which the console was opened (a page of a foreign name that resolves to loopback carries its own), a
session that was started with the code from the terminal, and, where it changes anything, the console's own origin and
a token.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection, Mapping

BODY_LIMIT = 4096
"""Bytes of a form."""
VALUES_LIMIT = 256 * 1024
"""Bytes of a form with the values of a chart."""
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


def refuse_host(header: str, names: Collection[str]) -> str:
    """Return why a request with this Host header is refused; empty where it is not."""
    if header.lower() in names:
        return ""
    return f"The console does not answer as {header[:100]!r}. Open the address that the terminal shows."


def refuse_origin(headers: Mapping[str, str], names: Collection[str]) -> str:
    """Return why a request that changes something is refused for where it comes from; empty where it is not."""
    origin = headers.get("origin", "")
    if origin in {f"http://{name}" for name in names}:
        return ""
    return "The request does not come from a page of this console."


def is_same(given: str, expected: str) -> bool:
    """Compare secrets in a time that says nothing about them."""
    return hmac.compare_digest(given.encode(), expected.encode())
