"""Says in which volume of a pod the path lies at which a program found no space left. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from trainchart.cluster.snapshot import Object, items_of, section

_PATH = re.compile(r"(?<![\w:/.])/(?!job:)(?:[\w.@+=~-]+/?)*")
_SHM = "/dev/shm"


def name_volume(error: str, spec: Object, container: Object, pod: str, node: str) -> str:
    """Return in a sentence what holds the first path in the error of a pod; "" where the error has none.

    Of an error without one, the launcher has added the full folder.
    """
    # Of a file that was moved, the second path is the one that was written.
    found = _PATH.search(error.rpartition("' -> ")[2])
    if found is None:
        return ""
    path = PurePosixPath(found.group())
    on_node = f"on the disk of its node{f' {node}' if node else ''}"
    mounts = {PurePosixPath(str(each.get("mountPath"))): each for each in items_of(container, "volumeMounts")}
    around = [mount for mount in mounts if mount.is_absolute() and path.is_relative_to(mount)]
    if not around:
        return f"{path} is in no volume, but in the container's own file system, {on_node}."
    mount = max(around, key=lambda each: len(each.parts))
    name = str(mounts[mount].get("name"))
    volume = next((each for each in items_of(spec, "volumes") if each.get("name") == name), {})
    return f"{mount} is {_describe(volume, name, pod, on_node, str(mount))}."


def _describe(volume: Object, name: str, pod: str, on_node: str, mount: str) -> str:
    """Return what a volume is; one that only a StatefulSet's claim templates define is not in `volume`."""
    claim = section(volume, "persistentVolumeClaim").get("claimName")
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
        setting = f", set by roles.{role}.shmSize" if mount == _SHM else ""
        return f"an emptyDir{limit} in memory{setting}"
    if "hostPath" in volume:
        return f"folder {section(volume, 'hostPath').get('path')} {on_node}"
    kinds = [key for key in volume if key != "name"]
    return f"volume {name} ({kinds[0]})" if kinds else f"claim {name}-{pod}"
