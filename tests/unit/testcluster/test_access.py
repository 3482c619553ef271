"""Tests reach a cluster of their own directly, wherever this machine's proxies lead, and describe what is there."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import ContainerStatus, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access, describe, keep_direct
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


class TwoContainers:
    """A client of an API server with one pod, which has two containers: it refuses to guess whose log is meant."""

    def list(self, kind: Any, namespace: str) -> list[Pod]:
        names = ("training", "git-sync")
        statuses = [ContainerStatus(image="", imageID="", name=name, ready=True, restartCount=0) for name in names]
        pod = Pod(metadata=ObjectMeta(name="exp1-mnist-chief-0"), status=PodStatus(containerStatuses=statuses))
        return [pod] if kind is Pod else []

    def log(self, name: str, *, namespace: str, tail_lines: int, container: str = "") -> Iterator[str]:
        if not container:
            raise ValueError("a container name must be specified")
        yield f"{namespace}/{name} says hello\n"


def test_description_has_the_log_of_every_container() -> None:
    text = describe(cast(Client, TwoContainers()), "team-a")
    for container in ("training", "git-sync"):
        assert f"    {container}: team-a/exp1-mnist-chief-0 says hello" in text
