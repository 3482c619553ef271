"""Where an index says that an archive is: addresses by which Helm and we ask for the same file. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from trainchart.errors import PublishError

_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_PART = r"[A-Za-z0-9_~@$&'()*+,=!-][A-Za-z0-9_~@$&'()*+,=!.-]*"
_RELATIVE = re.compile(rf"(?:\.\./)*(?:{_PART}/)*{_PART}")
_WHOLE = re.compile(
    rf"""https?://(?:[^\s/?\#@\\]*@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?
    (?:/(?:{_PART.replace("~", "~%")})?)*(?:\?[A-Za-z0-9_~%@$&'()*+,=!.:;/?-]*)?""",
    re.VERBOSE,
)
"""Addresses that Go's net/url and Python's urllib resolve alike, and no server or client changes."""
_ESCAPED_PART = re.compile("%(?:2e|2f|5c)", re.IGNORECASE)


def require_same_as_helm(reference: str, what: str) -> str:
    """Return an address of an index; PublishError for one by which Helm may ask for something else than we would.

    Such are `..;a.tgz`, where Python cuts at the `;` first, `a.tgz?x`, where Helm drops the query, `%2e%2e/a.tgz`, and
    `a%FF.tgz` in a folder, whose server knows names that are no text.
    """
    if _SCHEME.match(reference):
        try:
            has_host = bool(urlsplit(reference).hostname)
        except ValueError:
            has_host = False
        if not has_host or not reference.startswith(("https://", "http://")):
            raise PublishError(
                f"cannot {what}: the address must name a host and start with https:// or http://",
                hint="correct the address in the index",
            )
        is_same = bool(_WHOLE.fullmatch(reference)) and not _ESCAPED_PART.search(reference.partition("?")[0])
    else:
        is_same = bool(_RELATIVE.fullmatch(reference))
    if not is_same:
        raise PublishError(
            f"cannot {what}: Helm may fetch a different file from that URL",
            hint="correct the index: write names of letters, digits and -._+ only, such as charts/a-1.0.0.tgz",
        )
    return reference
