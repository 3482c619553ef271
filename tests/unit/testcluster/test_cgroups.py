"""The nodes' cgroups where the machine has cgroup v2, seen in a folder that stands in for the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.testcluster import cgroups


@pytest.mark.parametrize(
    ("known", "enabled", "written"),
    [
        ("cpuset cpu io memory hugetlb pids rdma misc dmem", "cpu io memory pids", "+cpuset +hugetlb"),
        ("cpu memory pids rdma", "", "+cpu +memory +pids"),
        ("cpuset cpu io memory hugetlb pids", "cpuset cpu io memory hugetlb pids", "cpuset cpu io memory hugetlb pids"),
    ],
    ids=["systemd", "bare", "complete"],
)
def test_a_node_gets_the_controllers_that_it_needs_and_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str, enabled: str, written: str
) -> None:
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path)
    (tmp_path / "cgroup.controllers").write_text(known + "\n")
    (tmp_path / "cgroup.subtree_control").write_text(enabled)

    cgroups.create_cgroup("trainchart-0-node1")

    assert (tmp_path / "trainchart-0-node1").is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == written
