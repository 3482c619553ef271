"""The tests' own cluster: it comes up whole, says why when it does not, and leaves nothing, killed or not."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from lightkube.resources.core_v1 import Node

from tests.cluster.testcluster import slots
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cgroups import find_cgroups
from tests.cluster.testcluster.cluster import Cluster, ClusterError, start_cluster
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.control import ControlError
from tests.cluster.testcluster.ingredients import prepare_ingredients

pytestmark = pytest.mark.cluster

START_AND_SLEEP = """
import sys, time
from pathlib import Path
from tests.cluster.testcluster.cluster import start_cluster
from tests.cluster.testcluster.ingredients import prepare_ingredients
cluster = start_cluster(prepare_ingredients(), Path(sys.argv[1]))
print(cluster.config.name, cluster.keeper_pid, cluster.folder, flush=True)
time.sleep(600)
"""


@dataclasses.dataclass(frozen=True)
class OtherRun:
    """Somebody else's test run on this machine, with a cluster of its own."""

    process: subprocess.Popen[str]
    name: str
    keeper_pid: int
    folder: Path


@pytest.fixture(scope="module")
def starting(lasting_cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    """Its process; the other cluster comes up while the first tests run."""
    process = subprocess.Popen(
        [sys.executable, "-c", START_AND_SLEEP, str(lasting_cluster.folder.parent)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def other_run(starting: subprocess.Popen[str]) -> OtherRun:
    assert starting.stdout
    name, pid, folder = starting.stdout.readline().split(maxsplit=2)
    return OtherRun(starting, name, int(pid), Path(folder.strip()))


def test_two_nodes_are_ready_with_four_gpus_each(own_cluster: Cluster, admin: Access) -> None:
    nodes = list(admin.client().list(Node))

    assert [node.metadata and node.metadata.name for node in nodes] == ["node1", "node2"]
    for node in nodes:
        assert node.status is not None
        assert {c.type: c.status for c in node.status.conditions or []}["Ready"] == "True"
        assert (node.status.allocatable or {})[GPU_RESOURCE] == "4"


@pytest.mark.usefixtures("starting")
def test_a_component_that_fails_shows_its_own_last_lines(own_cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "storage"
    program.write_text("#!/bin/sh\necho the disk is upset\nexit 3\n")
    program.chmod(0o755)
    ingredients = prepare_ingredients()
    broken = dataclasses.replace(ingredients, programs=dataclasses.replace(ingredients.programs, storage=str(program)))

    with pytest.raises(ClusterError, match=r"storage-\w+ ended with 3; its last lines:\n  the disk is upset"):
        start_cluster(broken, own_cluster.folder.parent)


def test_killed_run_leaves_only_files_that_the_next_removes(
    own_cluster: Cluster, other_run: OtherRun, admin: Access
) -> None:
    """Two clusters side by side, the second one killed with no chance to clean up."""
    assert other_run.name != own_cluster.config.name
    keeper = psutil.Process(other_run.keeper_pid)
    everything = [keeper, *keeper.children(recursive=True)]
    assert {"containerd", "kubernetes"} <= {name.split("-")[0] for name in _read_names(everything)}
    interface = _identify([Path("/sys/class/net", other_run.name, "ifindex")], Path.read_text)
    cgroups = _identify(find_cgroups(Path("/sys/fs/cgroup"), f"{other_run.name}-*"), lambda path: path.stat().st_ino)
    folder = other_run.folder
    assert interface
    assert cgroups
    assert (folder / "node1" / "containerd").exists()
    volumes = str((folder / "volumes.ext4").stat().st_ino)
    assert volumes in _list_loop_devices()

    other_run.process.send_signal(signal.SIGKILL)
    other_run.process.wait()

    _, alive = psutil.wait_procs(everything, timeout=60)
    assert not alive
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    _wait_for(lambda: volumes not in _list_loop_devices(), "the end of the loop device")
    # A run of somebody else that starts just now may be at it already.
    slots.remove_leftovers()
    deadline = time.monotonic() + 60
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not folder.exists()
    assert not interface & _identify(dict(interface), Path.read_text)
    assert not cgroups & _identify(dict(cgroups), lambda path: path.stat().st_ino)
    assert admin.kubectl("get", "--raw", "/readyz") == "ok"


def _list_loop_devices() -> list[str]:
    """Return the inodes of the files behind them; a path would be one of the cluster's own."""
    argv = ["losetup", "--noheadings", "--list", "--output", "BACK-INO"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


def _read_names(processes: Iterable[psutil.Process]) -> Iterator[str]:
    """Pass over what has ended since it was listed: a cluster calls short programs all the time."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield process.name()


def _identify(paths: Iterable[Path], read: Callable[[Path], object]) -> set[tuple[Path, object]]:
    """Return those paths that exist with what tells them from a later one of that name, since slots are used again."""
    found = set()
    for path in paths:
        with contextlib.suppress(OSError):
            found.add((path, read(path)))
    return found


def test_a_component_that_dies_later_is_told_with_its_last_lines(own_cluster: Cluster) -> None:
    own_cluster.check()
    pid = own_cluster.run_inside(["pgrep", "-f", "kube-proxy.*node2"]).stdout.split()[0]
    own_cluster.run_inside(["kill", "-9", pid])

    def is_told() -> bool:
        try:
            own_cluster.check()
        except ControlError as error:
            assert "kube-proxy-node2 ended with -9" in str(error)
            return True
        return False

    _wait_for(is_told, "the death of kube-proxy told")
    own_cluster.start_component("kube-proxy-node2")


def _wait_for(met: Callable[[], bool], what: str, deadline_seconds: float = 20) -> None:
    deadline = time.monotonic() + deadline_seconds
    while not met():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
