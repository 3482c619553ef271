"""Addresses of repositories: what each means, and what is refused before anybody is asked."""

from __future__ import annotations

import pytest

from trainchart.errors import PublishError
from trainchart.publish.location import Kind, parse_location


@pytest.mark.parametrize(
    ("text", "kind", "base", "path"),
    [
        ("oci://registry.example.com/team/charts", Kind.oci, "https://registry.example.com", "team/charts"),
        ("oci://registry.example.com:5000", Kind.oci, "https://registry.example.com:5000", ""),
        ("oci://[::1]:5000/charts/", Kind.oci, "https://[::1]:5000", "charts"),
        ("https://charts.example.com/stable/", Kind.web_folder, "https://charts.example.com", "stable"),
        ("HTTPS://charts.example.com", Kind.web_folder, "https://charts.example.com", ""),
        ("chartmuseum+https://cm.example.com/org", Kind.chart_museum, "https://cm.example.com", "org"),
        ("file:///srv/my%20charts", Kind.folder, "", "/srv/my charts"),
        ("https://charts.example.com/my%20charts", Kind.web_folder, "https://charts.example.com", "my charts"),
        ("dist/charts", Kind.folder, "", "dist/charts"),
        ("./registry.example.com/charts", Kind.folder, "", "./registry.example.com/charts"),
        (".", Kind.folder, "", "."),
        ("../charts", Kind.folder, "", "../charts"),
        ("charts/v1.2", Kind.folder, "", "charts/v1.2"),
        ("v1.2/charts", Kind.folder, "", "v1.2/charts"),
        ("./oci:/charts", Kind.folder, "", "./oci:/charts"),
        ("https://charts.example.com:0", Kind.web_folder, "https://charts.example.com:0", ""),
        (".charts", Kind.folder, "", ".charts"),
        ("/srv/charts.example.com", Kind.folder, "", "/srv/charts.example.com"),
    ],
)
def test_an_address_says_what_is_there(text: str, kind: Kind, base: str, path: str) -> None:
    found = parse_location(text)
    assert (found.kind, found.base, found.path) == (kind, base, path)


def test_plain_http_needs_the_word() -> None:
    for text in ("http://charts.example.com", "chartmuseum+http://charts.example.com"):
        with pytest.raises(PublishError, match="without encryption"):
            parse_location(text)
        assert parse_location(text, plain_http=True).base == "http://charts.example.com"
    assert parse_location("oci://localhost:5000/a", plain_http=True).base == "http://localhost:5000"
    assert parse_location("https://charts.example.com", plain_http=True).base == "https://charts.example.com"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file:///srv/a%00b", "is not the address"),
        ("", "is empty"),
        ("registry.example.com/charts", "could be a local path or a host"),
        ("localhost:5000/charts", "could be a local path or a host"),
        ("localhost/charts", "could be a local path or a host"),
        ("registry:5000", "could be a local path or a host"),
        ("s3://bucket/charts", "unknown kind of repository s3://"),
        ("https://ada:secret@charts.example.com", "holds a password"),
        ("https:///charts", "is not the address of a repository"),
        ("https://charts.example.com/?a=b", "is not the address of a repository"),
        ("https://charts.example.com:port/", "is not an address"),
        ("https://charts.example.com/a\udcff", "is not an address: it is not UTF-8"),
        ("oci://registry.example.com/Team", "cannot be a path in a registry"),
        ("file://server/share", "does not name a folder on this machine"),
        ("oci:/registry.example.com/charts", "could be a local path or an address"),
        ("oci//registry.example.com/charts", "could be a local path or an address"),
        ("file:/srv/charts", "could be a local path or an address"),
        ("git@github.com:team/charts", "could be a local path or an address"),
        (" oci://registry.example.com/charts", "could be a local path or an address"),
        ("charts ", "could be a local path or an address"),
        ("https://ada:secr/et@charts.example.com", "is not an address"),
        ("http://ada:secr@et@charts.example.com", "without encryption"),
    ],
)
def test_other_addresses_are_refused(text: str, message: str) -> None:
    with pytest.raises(PublishError, match=message) as caught:
        parse_location(text)
    assert caught.value.hint
    assert "secr" not in str(caught.value)
    assert "et@" not in str(caught.value)
