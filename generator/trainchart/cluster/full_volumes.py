"""Says in which volume of a pod the path lies that the error of a program names. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from trainchart.cluster.snapshot import Object, items_of, section

_PATH = re.compile(r"(?<![\w:/.])/(?!job:)(?:[\w.@+=~-]+/?)*")
_SHM = "/dev/shm"


def name_volume(error: str, spec: Object, container: Object, pod: str, node: str) -> str:
    """Return in a sentence what holds the first path in the error of a pod; "" where the error has none.

    Of an error without one, the launcher has added the full folder.
    """
    path = _find_path(error)
    if path is None:
        return ""
    on_node = f"on the disk of its node{f' {node}' if node else ''}"
    mount = _find_mount(path, spec, container)
    if mount is None:
        return f"{path} is in no volume, but in the container's own file system, {on_node}."
    return f"{mount.folder} is {_describe(mount, pod, on_node)}."


def find_claim(error: str, spec: Object, container: Object, pod: str) -> str:
    """Return the claim that holds the first path in the error of a pod; "" where none does that outlives the pod."""
    path = _find_path(error)
    mount = _find_mount(path, spec, container) if path else None
    return _name_claim(mount, pod) if mount else ""


class _Mount(NamedTuple):
    folder: PurePosixPath
    name: str
    volume: Object
    """Empty for one that only a StatefulSet's claim templates define."""


def _find_path(error: str) -> PurePosixPath | None:
    # Of a file that was moved, the second path is the one that was written.
    found = _PATH.search(error.rpartition("' -> ")[2])
    return PurePosixPath(found.group()) if found else None


def _find_mount(path: PurePosixPath, spec: Object, container: Object) -> _Mount | None:
    """Return the innermost mount around a path."""
    mounts = {PurePosixPath(str(each.get("mountPath"))): each for each in items_of(container, "volumeMounts")}
    around = [mount for mount in mounts if mount.is_absolute() and path.is_relative_to(mount)]
    if not around:
        return None
    folder = max(around, key=lambda each: len(each.parts))
    name = str(mounts[folder].get("name"))
    return _Mount(folder, name, next((each for each in items_of(spec, "volumes") if each.get("name") == name), {}))


def _name_claim(mount: _Mount, pod: str) -> str:
    named = str(section(mount.volume, "persistentVolumeClaim").get("claimName") or "")
    return named or ("" if mount.volume.keys() - {"name"} else f"{mount.name}-{pod}")


def _describe(mount: _Mount, pod: str, on_node: str) -> str:
    claim, volume, name = _name_claim(mount, pod), mount.volume, mount.name
    if claim:
        return f"claim {claim}"
    if "ephemeral" in volume:
        return f"claim {pod}-{name}, which is deleted with its pod"
    if "emptyDir" in volume:
        source = section(volume, "emptyDir")
        limit = f" (sizeLimit {source['sizeLimit']})" if source.get("sizeLimit") else ""
        if source.get("medium") != "Memory":
            return f"an emptyDir{limit} {on_node}"
        role = pod.rpartition("-")[0].rpartition("-")[2]
        setting = f", set by roles.{role}.shmSize" if str(mount.folder) == _SHM else ""
        return f"an emptyDir{limit} in memory{setting}"
    if "hostPath" in volume:
        return f"folder {section(volume, 'hostPath').get('path')} {on_node}"
    kinds = [key for key in volume if key != "name"]
    return f"volume {name} ({kinds[0]})"
