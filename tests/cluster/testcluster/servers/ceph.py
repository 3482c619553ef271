"""Ceph: a monitor, a manager, three object stores (OSDs) on sparse files, and a metadata server for CephFS. Pure."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable

from ..components import Component
from ..config import CONTROL_PLANE_ADDRESS
from .plan import Await, Mount, Run, Server, find_folder, find_mounts

NAME = "cephfs"
OSDS = (0, 1, 2)
_FOLDER = find_folder(NAME)
_CLUSTER_ID = "5ad6a1b4-8c4f-4f0e-9d65-8b7d3e1f0c11"
_ARGUMENTS = ("-c", f"{_FOLDER}/ceph.conf")
_KEY_BYTES = 16

CLI = ("timeout", "60", "ceph", *_ARGUMENTS)

_ALL_CLEAN = "^[0-9]* pgs: [0-9]* active+clean;"
AWAIT_CLEAN = (
    "timeout",
    "60",
    "sh",
    "-c",
    f"until {' '.join(CLI)} pg stat | grep -q '{_ALL_CLEAN}'; do sleep 0.2; done",
)
"""Waits until every placement group has all its copies: only then may another OSD be lost."""

_RIGHTS = {
    "mon.": {"mon": "allow *"},
    "client.admin": {"mon": "allow *", "osd": "allow *", "mds": "allow *", "mgr": "allow *"},
    "mgr.x": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
    "mds.a": {"mon": "allow profile mds", "osd": "allow rwx", "mds": "allow *", "mgr": "allow profile mds"},
    **{f"osd.{n}": {"mon": "allow profile osd", "osd": "allow *", "mgr": "allow profile osd"} for n in OSDS},
}

_SETTINGS = {
    "fsid": _CLUSTER_ID,
    "mon host": f"{CONTROL_PLANE_ADDRESS}:6789",
    "mon initial members": "a",
    "public addr": CONTROL_PLANE_ADDRESS,
    "keyring": f"{_FOLDER}/keyring",
    "run dir": str(_FOLDER),
    "admin socket": "",
    "pid file": "",
    "log file": f"{_FOLDER}/logs/$name.log",
    "mon cluster log file": f"{_FOLDER}/logs/cluster.log",
    "crash dir": f"{_FOLDER}/crash",
    "mon data": f"{_FOLDER}/mon",
    "mgr data": f"{_FOLDER}/mgr",
    "mds data": f"{_FOLDER}/mds",
    "osd data": f"{_FOLDER}/osd$id",
    "auth cluster required": "cephx",
    "auth service required": "cephx",
    "auth client required": "cephx",
    # All three copies are on one machine.
    "osd crush chooseleaf type": "0",
    "osd pool default size": "3",
    "osd pool default min size": "2",
    "osd pool default pg autoscale mode": "off",
    # The least that is allowed; a few files need a tenth of it.
    "osd memory target": "939524096",
    "bluestore block size": str(4 << 30),
    "bluestore fsck on mkfs": "false",
    # A lost OSD is a test's subject, and its time.
    "osd heartbeat interval": "1",
    "osd heartbeat grace": "4",
    "mon osd min down reporters": "1",
    "paxos propose interval": "0.05",
    "paxos min wait": "0.01",
    "mon tick interval": "1",
    "mgr stats period": "1",
    # The kernel checks owner, group and mode, with all groups of the process.
    "fuse default permissions": "true",
    "client permissions": "false",
}


def dump_config() -> str:
    """Dump the configuration of all daemons and clients."""
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in _SETTINGS.items()), ""])


def dump_keyring(make_secret: Callable[[int], bytes]) -> str:
    """Dump a key for each daemon and for the administrator, from secrets of so many bytes."""
    lines = []
    for name, rights in _RIGHTS.items():
        # Type (AES), seconds and nanoseconds of its creation, length.
        header = struct.pack("<hiih", 1, 0, 0, _KEY_BYTES)
        lines += [f"[{name}]", f"key = {base64.b64encode(header + make_secret(_KEY_BYTES)).decode()}"]
        lines += [f'caps {what} = "{right}"' for what, right in rights.items()]
    return "\n".join([*lines, ""])


def osd_component(number: int) -> str:
    """Return the name of the component that is an OSD."""
    return f"ceph-osd{number}"


def plan_ceph(make_secret: Callable[[int], bytes]) -> Server:
    """Plan the server; while two of its three OSDs are gone, reads and writes wait."""
    monmap = f"{_FOLDER}/monmap"
    address = f"[v2:{CONTROL_PLANE_ADDRESS}:3300,v1:{CONTROL_PLANE_ADDRESS}:6789]"
    config = " ".join(_ARGUMENTS)
    make_osd = f"ceph-osd {config} -i $0 --mkfs --monmap {monmap} --osd-uuid {_osd_id('$0')}"
    return Server(
        name=NAME,
        packages=("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse"),
        programs=("ceph", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool"),
        files={"ceph.conf": dump_config(), "keyring": dump_keyring(make_secret)},
        folders=("logs", "mon", "mgr", "mds", *(f"osd{number}" for number in OSDS)),
        steps=(
            Run(("monmaptool", "--create", "--fsid", _CLUSTER_ID, "--addv", "a", address, monmap)),
            Run(("ceph-mon", *_ARGUMENTS, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", f"{_FOLDER}/keyring")),
            Component("ceph-mon", ("ceph-mon", *_ARGUMENTS, "-f", "-i", "a")),
            Component("ceph-mgr", ("ceph-mgr", *_ARGUMENTS, "-f", "-i", "x")),
            # Side by side, each in a shell of its own.
            Run(("sh", "-c", f"printf '%s\\n' {' '.join(map(str, OSDS))} | xargs -P 3 -n 1 sh -c '{make_osd}'")),
            Await((*CLI, "mon", "stat"), "leader"),
            *(Run((*CLI, "osd", "new", _osd_id(str(number)), str(number))) for number in OSDS),
            *(Component(osd_component(n), ("ceph-osd", *_ARGUMENTS, "-f", "-i", str(n))) for n in OSDS),
            Component("ceph-mds", ("ceph-mds", *_ARGUMENTS, "-f", "-i", "a")),
            *(Run((*CLI, "osd", "pool", "create", pool, "8")) for pool in ("metadata", "data")),
            Run((*CLI, "fs", "new", "volumes", "metadata", "data")),
            Await((*CLI, "mds", "stat"), "up:active"),
        ),
        mounts=tuple(_plan_mount(where) for where in find_mounts(NAME)),
    )


def _osd_id(number: str) -> str:
    return f"0000000{number}-8c4f-4f0e-9d65-8b7d3e1f0c11"


def _plan_mount(where: str) -> Mount:
    node, path = find_mounts(NAME)[where]
    log = f"--log-file={_FOLDER}/logs/mount-{where}.log"
    return Mount(Component(f"{NAME}-{where}", ("ceph-fuse", *_ARGUMENTS, "-f", log, str(path)), node), path)
