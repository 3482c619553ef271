"""Which cluster the tests use, decided without looking at the machine."""

from __future__ import annotations

import dataclasses

import pytest

from tests.cluster.testcluster.choice import NEEDED_PROGRAMS, Machine, Named, Nowhere, Own, choose_cluster, parse_rights

ABLE = Machine(
    system="Linux",
    is_root=True,
    has_rights=True,
    found_programs=frozenset(NEEDED_PROGRAMS),
    has_network_plugins=True,
    has_go=True,
    cache_file_system="ext4",
    has_bridge_filter=True,
)


def test_a_machine_that_can_gets_its_own_cluster() -> None:
    assert choose_cluster(None, {}, ABLE) == Own()


@pytest.mark.parametrize(
    ("context", "environment", "chosen"),
    [
        ("kind-kind", {}, Named(None, "kind-kind")),
        (None, {"KUBECONFIG": "/home/ada/.kube/config"}, Named("/home/ada/.kube/config", None)),
        ("k3d-x", {"KUBECONFIG": "/k"}, Named("/k", "k3d-x")),
    ],
)
def test_a_named_cluster_wins(context: str | None, environment: dict[str, str], chosen: Named) -> None:
    assert choose_cluster(context, environment, ABLE) == chosen


def test_an_empty_kubeconfig_names_nothing() -> None:
    assert choose_cluster(None, {"KUBECONFIG": ""}, ABLE) == Own()


@pytest.mark.parametrize(
    ("lack", "named"),
    [
        ({"is_root": False, "has_rights": False}, "root"),
        ({"has_rights": False}, "the rights of the machine's root, which this container keeps back"),
        ({"has_go": False}, "Go"),
        ({"has_bridge_filter": False}, "the kernel module br_netfilter (modprobe br_netfilter)"),
        ({"cache_file_system": "overlay"}, "a cache folder that is not on overlay (name one by XDG_CACHE_HOME)"),
        ({"has_network_plugins": False}, "the network plugins in /usr/lib/cni"),
        ({"found_programs": frozenset(NEEDED_PROGRAMS) - {"containerd"}}, "the program containerd"),
        ({"system": "Darwin", "is_root": False, "has_rights": False, "has_go": False}, "Linux (this is Darwin)"),
    ],
)
def test_what_is_missing_is_named_in_one_line(lack: dict[str, object], named: str) -> None:
    choice = choose_cluster(None, {}, dataclasses.replace(ABLE, **lack))  # type: ignore[arg-type]

    assert choice == Nowhere(f"no test cluster: missing {named}; or name a cluster with --kube-context")


@pytest.mark.parametrize(
    ("effective", "uid_map", "has_rights"),
    [
        ("000001ffffffffff", "         0          0 4294967295\n", True),
        ("00000000a80425fb", "         0          0 4294967295\n", False),
        ("000001ffffdfffff", "         0          0 4294967295\n", False),
        ("000001ffffffffff", "         0       1000          1\n", False),
        ("000001ffffffffff", "         0     100000      65536\n", False),
    ],
    ids=["the machine's", "docker", "without CAP_SYS_ADMIN", "unshare --map-root-user", "a container's own users"],
)
def test_roots_in_containers_are_told_from_the_machines(effective: str, uid_map: str, has_rights: bool) -> None:
    status = f"Name:\tpython\nCapPrm:\t000001ffffffffff\nCapEff:\t{effective}\nCapBnd:\t000001ffffffffff\n"

    assert parse_rights(status, uid_map) is has_rights


def test_where_there_is_no_proc_root_has_no_rights() -> None:
    assert not parse_rights("", "")
