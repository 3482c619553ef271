"""Says which storage a volume or a claim leads to, so that two that lead to one folder are known as one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from trainchart.cluster.snapshot import Object, Objects, listed, name_of, section

OF_NODE = "hostPath"
"""Storage that each node has for itself, as far as can be told."""


class StorageFolder(NamedTuple):
    """A folder, however pods come to it."""

    storage: str
    """In words, such as claim team-data; empty for an object store."""
    path: str
    """From the root of the storage, without a slash at the start; or the address in an object store."""

    def __str__(self) -> str:
        if not self.storage:
            return self.path
        return f"{self.storage} /{self.path}" if self.storage == OF_NODE else "/".join(filter(None, self))

    def enter(self, *folders: str) -> StorageFolder:
        """Return a folder below this one."""
        return StorageFolder(self.storage, str(PurePosixPath("/", self.path, *folders)).strip("/"))


def find_folder(source: Object) -> StorageFolder | None:
    """Return what a volume of a pod or a PersistentVolume is, by its source; None where that cannot be compared."""
    nfs, of_node, csi = (section(source, kind) for kind in ("nfs", "hostPath", "csi"))
    if of_node.get("path"):
        return StorageFolder(OF_NODE, "").enter(str(of_node["path"]))
    attributes = section(csi, "volumeAttributes")
    server = nfs.get("server") or attributes.get("server")
    share = nfs.get("path") or attributes.get("share")
    if server and share:
        return StorageFolder(f"NFS server {server}", "").enter(str(share))
    # A volume that a pod describes by itself has no handle: it is the pod's own.
    if csi.get("volumeHandle"):
        return StorageFolder(f"{csi.get('driver')} volume {csi['volumeHandle']}", "")
    return None


def list_volumes_of(names: Iterable[str], claims: Objects) -> list[str]:
    """Return the PersistentVolumes of claims, as far as they are bound."""
    wanted = set(names)
    found = (section(each, "spec").get("volumeName") for each in listed(claims) if name_of(each) in wanted)
    return [str(name) for name in found if name]


def find_storage(claims: Objects, volumes: Objects) -> Mapping[str, StorageFolder]:
    """Return where claims lead to, as far as their volumes are among these and can be compared."""
    folders = {name_of(each): folder for each in listed(volumes) if (folder := find_folder(section(each, "spec")))}
    bound = {name_of(each): str(section(each, "spec").get("volumeName") or "") for each in listed(claims)}
    return {claim: folders[volume] for claim, volume in bound.items() if volume in folders}
