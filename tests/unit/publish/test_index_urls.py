"""Addresses in an index: only those by which Helm asks for the same file."""

from __future__ import annotations

import re

import pytest

from trainchart.errors import PublishError
from trainchart.publish.index_urls import require_same_as_helm


@pytest.mark.parametrize("place", ["http:///x.tgz", "https:///x.tgz", "http://", "http:x.tgz", "http://:80/x.tgz"])
def test_an_address_without_a_host_is_refused(place: str) -> None:
    with pytest.raises(PublishError, match=f"cannot read {place}: the address must name a host"):
        require_same_as_helm(place, f"read {place}")


@pytest.mark.parametrize(
    "place",
    [
        *("a.tgz?v=1", "a.tgz?", "x//a.tgz", "//r.example.com/a.tgz", "https://r.example.com/x/../a.tgz"),
        *("a%2fb c.tgz", "%2E%2e%2fx y.tgz", "https://r.example.com/z/%2e%2e/x.tgz", "c/..;a.tgz", "c/.;a.tgz"),
        *("a b.tgz", "a\\b.tgz", "https://r.example.com/x\\y.tgz", "https://r.example.com\\@e.example.com/x.tgz"),
        *("a\u00e9.tgz", ".", "..", "x/..", "https://r.example.com/\ud800.tgz", "a%FF.tgz", "a.tgz#b", "a\0.tgz", ""),
    ],
)
def test_an_address_that_helm_reads_differently_is_refused(place: str) -> None:
    with pytest.raises(PublishError, match=re.escape(f"cannot read {place}: Helm may fetch a different file")):
        require_same_as_helm(place, f"read {place}")


@pytest.mark.parametrize(
    "place",
    [
        *("a-1.0.0.tgz", "../a,b='(!$)'.tgz", "c..d/a-1.0.0+1.tgz", "https://r.example.com/a-1.0.0%2B1.tgz"),
        *("https://u:p@r.example.com:8080/x//a.tgz?v=1;w=2", "http://[::1]/a.tgz"),
    ],
)
def test_an_address_that_helm_reads_alike_is_taken(place: str) -> None:
    assert require_same_as_helm(place, "") == place
