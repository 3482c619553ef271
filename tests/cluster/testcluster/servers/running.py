"""Start and stop storage servers in a running cluster. Acts on the machine.

All their processes and mounts are in the cluster's namespaces, so that a killed run takes them with it, and their files
are in its folder, which the next run removes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

from ..access import Access, CommandFailed
from ..cluster import Cluster, ClusterError
from ..components import Component
from ..config import INSIDE
from ..control import ControlError
from . import ceph, glusterfs
from .plan import Await, Mount, Run, Server, plan_class

NAMES = (glusterfs.NAME, ceph.NAME)
_POLL_SECONDS = 0.1
_MOUNT_SECONDS = 20
_RELEASE_SECONDS = 20


class ServerError(Exception):
    """A storage server did not start or did not end."""


def plan_server(name: str) -> Server:
    """Plan one of NAMES."""
    return glusterfs.plan_glusterfs() if name == glusterfs.NAME else ceph.plan_ceph(os.urandom)


def find_missing(server: Server) -> str:
    """Return what this machine lacks for a server, in a line; empty where it lacks nothing."""
    if not Path("/dev/fuse").exists():
        return f"{server.name} needs /dev/fuse"
    missing = [program for program in server.programs if not shutil.which(program)]
    packages = " ".join(server.packages)
    return f"{server.name} needs {', '.join(missing)}: apt-get install {packages}" if missing else ""


def start_server(server: Server, cluster: Cluster, admin: Access) -> None:
    """Start a server, mount it on every node and make its StorageClass; of one that fails, nothing is left."""
    if reason := find_missing(server):
        raise ServerError(reason)
    folder = cluster.folder / server.name
    if folder.exists():
        raise ServerError(f"{server.name} runs already in {cluster.config.name}")
    folder.mkdir(mode=0o755)
    try:
        for name in server.folders:
            (folder / name).mkdir()
        for name, text in server.files.items():
            (folder / name).write_text(text)
        for step in server.steps:
            _perform(step, cluster)
        for mount in server.mounts:
            cluster.run_inside(["mkdir", "-p", str(mount.path)])
            cluster.run_component(mount.component)
        for mount in server.mounts:
            _await_mount(mount, cluster)
        admin.kubectl("apply", "-f", "-", text=json.dumps(plan_class(server.name)))
    except (ClusterError, CommandFailed, ControlError, ServerError) as error:
        logs = {component.name: _read_tail(cluster, component) for component in server.components}
        stop_server(server, cluster, admin)
        told = "\n".join(f"{name}:\n{text}" for name, text in logs.items() if text)
        raise ServerError(f"{server.name} did not start: {error}\n{told}") from error


def stop_server(server: Server, cluster: Cluster, admin: Access) -> None:
    """End a server and remove everything of it; nothing happens where it does not run."""
    if not (cluster.folder / server.name).exists():
        return
    admin.kubectl("delete", "storageclass", server.name, "--ignore-not-found", check=False)
    for mount in server.mounts:
        # Lazily: whatever has a file open there keeps the mount, not its place.
        cluster.run_inside(["umount", "--lazy", str(mount.path)], check=False)
        cluster.run_inside(["rmdir", str(mount.path)], check=False)
    for component in server.components:
        # One that ended by itself or never started.
        with contextlib.suppress(ControlError):
            cluster.stop_component(component.name)
    for step in server.last_steps:
        cluster.run_inside(step.argv)
    shutil.rmtree(cluster.folder / server.name)
    _await_release(server, cluster)


def find_leftovers(server: Server, cluster: Cluster) -> list[str]:
    """Return what is left of a server: processes, mounts and folders."""
    own = f"{INSIDE}/{server.name}/"
    processes = cluster.run_inside(["ps", "-eo", "args"]).stdout.splitlines()
    left = [f"process {line}" for line in processes if own in line]
    paths = {str(mount.path) for mount in server.mounts}
    mounts = cluster.run_inside(["cat", "/proc/self/mounts"]).stdout.splitlines()
    left += [f"mount {line}" for line in mounts if line.split()[1] in paths or f"fuse.{server.name}" in line]
    left += [f"folder {path}" for path in paths if not cluster.run_inside(["test", "-e", path], check=False).returncode]
    return left + ([f"folder {own}"] if (cluster.folder / server.name).exists() else [])


def _perform(step: Run | Await | Component, cluster: Cluster) -> None:
    match step:
        case Run(argv):
            cluster.run_inside(argv)
        case Component():
            cluster.run_component(step)
        case Await(argv, text, seconds):
            deadline = time.monotonic() + seconds
            while text not in (said := cluster.run_inside(argv, check=False)).stdout:
                if time.monotonic() > deadline:
                    raise ServerError(f"{argv} did not say {text!r} within {seconds:.0f} s: {said.stdout}{said.stderr}")
                time.sleep(_POLL_SECONDS)


def _await_mount(mount: Mount, cluster: Cluster) -> None:
    deadline = time.monotonic() + _MOUNT_SECONDS
    while cluster.run_inside(["mountpoint", "--quiet", str(mount.path)], check=False).returncode:
        if time.monotonic() > deadline:
            raise ServerError(f"{mount.path} is not mounted within {_MOUNT_SECONDS} s")
        time.sleep(_POLL_SECONDS)


def _await_release(server: Server, cluster: Cluster) -> None:
    deadline = time.monotonic() + _RELEASE_SECONDS
    while left := find_leftovers(server, cluster):
        if time.monotonic() > deadline:
            raise ServerError(f"of {server.name} is left: {'; '.join(left)}")
        time.sleep(_POLL_SECONDS)


def _read_tail(cluster: Cluster, component: Component) -> str:
    log = cluster.folder / "logs" / f"{component.name}.log"
    return "\n".join(log.read_text(errors="replace").splitlines()[-5:]) if log.exists() else ""
