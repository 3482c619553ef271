"""Tests reach a cluster of their own directly, wherever this machine's proxies lead."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from tests.cluster.testcluster.access import Access, keep_direct
from tests.cluster.testcluster.config import ClusterConfig

ADDRESS = ClusterConfig(slot=7).address
PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("environment", "kept"),
    [
        ({}, None),
        ({"NO_PROXY": "localhost"}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": PROXY}, ADDRESS),
        ({"https_proxy": PROXY, "no_proxy": ".example"}, f".example,{ADDRESS}"),
        ({"ALL_PROXY": PROXY, "NO_PROXY": "localhost,10.0.0.0/8"}, f"localhost,10.0.0.0/8,{ADDRESS}"),
    ],
)
def test_a_host_is_kept_direct_beside_those_that_are(environment: dict[str, str], kept: str | None) -> None:
    assert keep_direct(environment, ADDRESS) == ({"NO_PROXY": kept, "no_proxy": kept} if kept else {})


def test_own_cluster_bypasses_proxies_and_others_use_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", PROXY)
    monkeypatch.setenv("no_proxy", "localhost")
    monkeypatch.delenv("NO_PROXY", raising=False)
    own = Access(Path("/kubeconfig"), None, (), ADDRESS).environment
    named = Access(Path("/kubeconfig"), "kind-kind", ()).environment

    assert named["no_proxy"] == "localhost"
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    assert urllib.request.proxy_bypass(ADDRESS)
    assert not urllib.request.proxy_bypass("198.18.8.2")
