"""What a storage server consists of: files, commands, processes and the mounts of its clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..components import VOLUMES, Component
from ..config import INSIDE, NODES

CONTROL_PLANE = "control-plane"


@dataclass(frozen=True)
class Run:
    """Run a command in the control plane's network; it must succeed."""

    argv: tuple[str, ...]


@dataclass(frozen=True)
class Await:
    """Repeat a command until its output contains a text."""

    argv: tuple[str, ...]
    text: str
    seconds: float = 60


@dataclass(frozen=True)
class Mount:
    """A client of its own for each node, as on real machines, and one for the provisioner."""

    component: Component
    path: PurePosixPath


Step = Run | Await | Component


@dataclass(frozen=True)
class Server:
    """One storage system and how to start and end it."""

    name: str
    """Of its StorageClass, its folder and the root of its volumes."""
    packages: tuple[str, ...]
    """Debian packages that have the programs."""
    programs: tuple[str, ...]
    files: Mapping[str, str]
    """Configuration, by path below `folder`."""
    folders: tuple[str, ...]
    """Empty folders below `folder`."""
    steps: tuple[Step, ...]
    mounts: tuple[Mount, ...]
    last_steps: tuple[Run, ...] = ()
    """End processes that are not components."""

    @property
    def folder(self) -> PurePosixPath:
        return find_folder(self.name)

    @property
    def components(self) -> tuple[Component, ...]:
        """Clients first, then the servers from last to first: the order in which they end."""
        servers = [step for step in self.steps if isinstance(step, Component)]
        return (*(mount.component for mount in self.mounts), *reversed(servers))


def find_folder(name: str) -> PurePosixPath:
    """Return where a server keeps everything, as the cluster sees it."""
    return INSIDE / name


def find_mounts(name: str) -> dict[str, tuple[str | None, PurePosixPath]]:
    """Return the node and the mount point of each client, by where it runs."""
    mounts: dict[str, tuple[str | None, PurePosixPath]] = {CONTROL_PLANE: (None, VOLUMES / name)}
    return mounts | {node.name: (node.name, node.mounts / name) for node in NODES}


def plan_class(name: str) -> dict[str, Any]:
    """Plan the StorageClass whose volumes are folders of a server's file system."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "storage.trainchart.test",
        "parameters": {"root": name},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }
