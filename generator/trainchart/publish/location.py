"""What --to and --from mean: the kind of repository behind an address. Pure."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from trainchart.errors import PublishError

_KINDS_HINT = (
    "expected oci://HOST/PATH, https://HOST/PATH (a folder with index.yaml, written by WebDAV), "
    "chartmuseum+https://HOST, file:///PATH or a path"
)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_NAMESPACE = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
"""What the OCI distribution specification allows in front of the chart's name."""

_HOST_FIRST = re.compile(
    r"(?:localhost|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z][A-Za-z0-9-]*|[A-Za-z0-9.-]+:[0-9]+)(?:/|$)"
)
_ADDRESS_FIRST = re.compile(r"\s|[^/]*:|(?:oci|https?|file)//|.*\s$", re.DOTALL)
"""Folders are rarely called so, and no user means to publish into one for lack of a scheme, or for a slip in it."""


class Kind(enum.StrEnum):
    oci = "oci"
    web_folder = "https"
    chart_museum = "chartmuseum"
    folder = "file"


@dataclass(frozen=True)
class Location:
    """Where a repository is."""

    kind: Kind
    url: str
    """As the user wrote it, without a slash at the end."""
    base: str = ""
    """Scheme, host and port that HTTP is spoken with."""
    path: str = ""
    """Path on that host, decoded, without slashes around it; for a folder, its path on this machine."""

    @property
    def host(self) -> str:
        return self.base.partition("://")[2]


def parse_location(text: str, *, plain_http: bool = False) -> Location:
    """Return what `text` means. Raises PublishError for what no repository can be behind."""
    if "\0" in unquote(text):
        raise PublishError(f"{text!r} is not the address of a repository", hint=_KINDS_HINT)
    match = _SCHEME.fullmatch(text)
    if not match:
        if not text.strip():
            raise PublishError("the address of the repository is empty", hint=_KINDS_HINT)
        if _HOST_FIRST.match(text):
            raise PublishError(
                f"{text} could be a local path or a host",
                hint=f"write oci://{text} for a registry, https://{text} for a web server, or ./{text} for a folder",
            )
        if _ADDRESS_FIRST.match(text):
            raise PublishError(
                f"{_without_secret(text)!r} could be a local path or an address",
                hint=f"{_KINDS_HINT}; for a folder of that name, prefix it with ./",
            )
        return Location(Kind.folder, text, path=text)
    scheme, rest = match["scheme"].lower(), match["rest"].rstrip("/")
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host not in ("", "localhost") or not slash:
            raise PublishError(f"{text} does not name a folder on this machine", hint="write file:///absolute/path")
        return Location(Kind.folder, text, path="/" + unquote(path))
    kinds = {
        "oci": Kind.oci,
        "https": Kind.web_folder,
        "http": Kind.web_folder,
        "chartmuseum+https": Kind.chart_museum,
        "chartmuseum+http": Kind.chart_museum,
    }
    if scheme not in kinds:
        raise PublishError(f"unknown kind of repository {scheme}://", hint=_KINDS_HINT)
    if scheme.endswith("http") and not plain_http:
        raise PublishError(
            f"{_without_secret(text)} would be reached without encryption",
            hint="use https, or pass --plain-http on a network that you trust",
        )
    spoken = "http" if plain_http and not scheme.endswith("https") else "https"
    return _remote(kinds[scheme], f"{scheme}://{rest}", spoken, rest)


def _remote(kind: Kind, url: str, spoken: str, rest: str) -> Location:
    try:
        rest.encode()
        parts = urlsplit(f"{spoken}://{rest}")
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        # What Python shows of a port may be a part of a password.
        why = "" if "@" in rest else f": {'it is not UTF-8' if isinstance(error, UnicodeError) else error}"
        raise PublishError(f"{_without_secret(url)} is not an address{why}", hint=_KINDS_HINT) from error
    if parts.username is not None or parts.password is not None:
        raise PublishError(
            f"{_without_secret(url)} holds a password, which ends up in logs and process lists",
            hint="log in with helm registry login or helm repo add, or set TRAINCHART_USERNAME and TRAINCHART_PASSWORD",
        )
    if not parts.hostname or parts.query or parts.fragment:
        raise PublishError(f"{url} is not the address of a repository", hint=_KINDS_HINT)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = unquote(parts.path).strip("/")
    if kind is Kind.oci and path and not _NAMESPACE.fullmatch(path):
        raise PublishError(
            f"{url}: {path!r} cannot be a path in a registry", hint="use lower-case letters, digits, dots and dashes"
        )
    return Location(kind, url, f"{spoken}://{host}{port}", path)


def _without_secret(url: str) -> str:
    # Up to the last @: a password may hold a slash, and another @.
    return re.sub(r"://.*@", "://***@", url, flags=re.DOTALL)
