"""Plans of the storage servers: what is started, in which order it ends, and what their configuration says."""

from __future__ import annotations

import base64
import configparser

import pytest

from tests.cluster.testcluster.components import VOLUMES
from tests.cluster.testcluster.config import CONTROL_PLANE_ADDRESS, NODES
from tests.cluster.testcluster.faults.fault import Inside, StartComponent, StopComponent
from tests.cluster.testcluster.faults.storage_servers import kill_bricks, kill_osds
from tests.cluster.testcluster.servers import ceph, glusterfs
from tests.cluster.testcluster.servers.plan import Run, Server, plan_class

SERVERS = (glusterfs.plan_glusterfs(), ceph.plan_ceph(bytes))


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_every_node_and_the_provisioner_have_a_mount(server: Server) -> None:
    found = {str(mount.path): mount.component.node for mount in server.mounts}
    assert found == {f"{VOLUMES}/{server.name}": None} | {f"{n.mounts}/{server.name}": n.name for n in NODES}
    for mount in server.mounts:
        assert mount.component.argv[-1] == str(mount.path)


def test_clients_end_first_and_the_monitor_last() -> None:
    names = [component.name for component in SERVERS[1].components]
    assert names[:3] == ["cephfs-control-plane", "cephfs-node1", "cephfs-node2"]
    assert names[3:] == ["ceph-mds", "ceph-osd2", "ceph-osd1", "ceph-osd0", "ceph-mgr", "ceph-mon"]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_class_has_the_folder_of_its_server_as_root(server: Server) -> None:
    found = plan_class(server.name)
    assert found["metadata"]["name"] == found["parameters"]["root"] == server.name


def test_glusterfs_has_three_copies_on_three_bricks() -> None:
    commands = [step.argv for step in SERVERS[0].steps if isinstance(step, Run)]
    create = next(argv for argv in commands if "create" in argv)
    bricks = tuple(f"{CONTROL_PLANE_ADDRESS}:{glusterfs.brick(number)}" for number in glusterfs.BRICKS)
    assert create[-6:] == ("replica", "3", *bricks, "force")


def test_glusterd_keeps_its_state_in_the_folder_of_the_run() -> None:
    text = glusterfs.dump_glusterd()
    assert "option working-directory /run/cluster/glusterfs/state\n" in text
    assert text.startswith("volume management\n")
    assert text.endswith("end-volume\n")


def test_ceph_keys_are_of_the_kind_and_length_that_it_reads() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(ceph.dump_keyring(lambda count: b"k" * count))
    assert set(parser.sections()) == {"mon.", "client.admin", "mgr.x", "mds.a", "osd.0", "osd.1", "osd.2"}
    key = base64.b64decode(parser["osd.1"]["key"])
    assert key == b"\1\0" + bytes(8) + b"\x10\0" + b"k" * 16
    assert parser["osd.1"]["caps mon"] == '"allow profile osd"'


def test_ceph_keeps_three_copies_and_writes_with_two() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(ceph.dump_config())
    settings = parser["global"]
    assert (settings["osd pool default size"], settings["osd pool default min size"]) == ("3", "2")
    assert settings["osd memory target"] == "939524096"


def test_ceph_logs_into_the_folder_of_the_run() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(ceph.dump_config())
    for name in ("log file", "mon cluster log file", "crash dir", "run dir"):
        assert parser["global"][name].startswith("/run/cluster/cephfs"), name


def test_killed_bricks_come_back_with_one_command() -> None:
    fault = kill_bricks(1, 3)
    kills = [change.step for change in fault.changes]
    assert [glusterfs.pid_file(n) in str(kill) for n, kill in zip((1, 3), kills, strict=True)] == [True, True]
    restart = Inside((*glusterfs.CLI, "volume", "start", "volumes", "force"))
    assert all(change.undo == (restart,) for change in fault.changes)


def test_killed_osds_come_back_as_the_same_components() -> None:
    wait, *kills = kill_osds(0, 2).changes
    assert [change.step for change in kills] == [StopComponent("ceph-osd0"), StopComponent("ceph-osd2")]
    assert kills[1].undo == (StartComponent("ceph-osd2"),)
    # The first change is undone last.
    assert wait.undo == (Inside(ceph.AWAIT_CLEAN),)
