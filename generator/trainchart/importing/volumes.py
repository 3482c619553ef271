"""Volumes of pods: claims become `volumes` of the spec, and what else a pod may mount its extra volumes. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.importing.ledger import Ledger, Place
from trainchart.plan.volumes import RESERVED_FOLDERS

_OWN_NAMES = {"config", "state", "tmp", "shm", "launcher"}
"""Volumes that the chart makes itself."""
_CLAIM = "persistentVolumeClaim"
_NODE = "hostPath"
_HOST_FOLDER = (
    "a folder on a node differs from node to node, and the Pod Security level restricted forbids it",
    "put the data into a claim and add it to volumes: {existingClaim: NAME, mountPath: %s}",
)


@dataclass(frozen=True)
class Mount:
    """A claim that one role mounts."""

    name: str
    """Name of the volume in the pod."""
    claim: str
    path: str
    sub_path: str
    read_only: bool


@dataclass
class RoleVolumes:
    """What one role mounts."""

    mounts: list[Mount] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """Keys of the role: extraVolumes, extraVolumeMounts, shmSize, tmpSize."""


def read_volumes(
    pod: Mapping[str, Any], container: Mapping[str, Any], places: tuple[Place, Place], ledger: Ledger
) -> RoleVolumes:
    """Return what the training container mounts; `places` are those of the pod and of the container."""
    pod_place, container_place = places
    known: dict[str, tuple[dict[str, Any], Place]] = {}
    for index, entry in enumerate(ledger.entries(pod.get("volumes"), (*pod_place, "volumes"))):
        place = (*pod_place, "volumes", index)
        volume = ledger.mapping(entry, place)
        if isinstance(volume.get("name"), str):
            known[volume["name"]] = volume, place
    found = RoleVolumes()
    shared = set(_named_by_others(pod, container))
    kept: dict[str, dict[str, Any]] = {}
    mounts = ledger.entries(container.get("volumeMounts"), (*container_place, "volumeMounts"))
    for index, entry in enumerate(mounts):
        place = (*container_place, "volumeMounts", index)
        mount = ledger.mapping(entry, place)
        volume, _ = known.get(str(mount.get("name")), ({}, place))
        if not volume:
            ledger.leave(place, f"the pod has no volume {str(mount.get('name'))!r}")
            continue
        _read_mount(mount, volume, place, shared, found, kept, ledger)
    for name in sorted(shared - kept.keys()):
        volume, place = known.get(name, ({}, ()))
        if volume and not _is_of_node(volume, place, str(volume.get("name")), ledger):
            kept[name] = volume
            ledger.carry(place, "extraVolumes")
    if kept:
        found.settings["extraVolumes"] = [{**volume, "name": own_name(name)} for name, volume in kept.items()]
    return found


def own_name(name: str) -> str:
    """Return the name of an extra volume, which must not be one of the chart's."""
    return f"own-{name}" if name in _OWN_NAMES or name.startswith("volume-") else name


def _named_by_others(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    """Yield the volumes that other containers of the pod mount."""
    for key in ("initContainers", "containers"):
        entries = pod.get(key)
        for other in entries if isinstance(entries, list) else ():
            mounts = other.get("volumeMounts") if isinstance(other, dict) and other is not container else None
            for mount in mounts if isinstance(mounts, list) else ():
                if isinstance(mount, dict) and isinstance(mount.get("name"), str):
                    yield mount["name"]


def _read_mount(
    mount: dict[str, Any],
    volume: dict[str, Any],
    place: Place,
    shared: set[str],
    found: RoleVolumes,
    kept: dict[str, dict[str, Any]],
    ledger: Ledger,
) -> None:
    name, path = str(mount["name"]), posixpath.normpath(str(mount.get("mountPath") or "/"))
    claim = volume.get(_CLAIM)
    if _is_scratch(volume, path, place, found, ledger) or _is_of_node(volume, place, path, ledger):
        return
    is_plain = set(mount) <= {"name", "mountPath", "subPath", "readOnly"}
    is_free = not any(path == folder or path.startswith(f"{folder}/") for folder in ("/", *RESERVED_FOLDERS))
    if (
        isinstance(claim, dict)
        and isinstance(claim.get("claimName"), str)
        and is_plain
        and is_free
        and name not in shared
    ):
        read_only = mount.get("readOnly") is True or claim.get("readOnly") is True
        sub_path = str(mount.get("subPath") or "").rstrip("/")
        found.mounts.append(Mount(name, claim["claimName"], path, sub_path, read_only))
        ledger.carry(place, "volumes")
        return
    kept[name] = volume
    found.settings.setdefault("extraVolumeMounts", []).append({**mount, "name": own_name(name)})
    ledger.carry(place, "extraVolumes and extraVolumeMounts")


def _is_scratch(volume: dict[str, Any], path: str, place: Place, found: RoleVolumes, ledger: Ledger) -> bool:
    """Take a volume for /tmp or /dev/shm, which the chart has already; its size is what is left to say."""
    key = {"/tmp": "tmpSize", "/dev/shm": "shmSize"}.get(path, "")
    if not key or "emptyDir" not in volume:
        return False
    folder = volume["emptyDir"]
    size = folder.get("sizeLimit") if isinstance(folder, dict) else None
    if isinstance(size, (str, int)):
        found.settings[key] = size
    ledger.carry(place, f"{path}, which every pod has: {key}")
    return True


def _is_of_node(volume: dict[str, Any], place: Place, path: str, ledger: Ledger) -> bool:
    if _NODE not in volume:
        return False
    reason, remedy = _HOST_FOLDER
    ledger.leave(place, reason, remedy % path)
    return True


_CHECKPOINTS = re.compile(r"checkpoints?|ckpts?|models?|train|training|outputs?|results?|exports?|saved|runs?")


def merge_mounts(mounts: Mapping[str, list[Mount]], roles: list[str], leader: str) -> dict[str, dict[str, Any]]:
    """Return the section `volumes` for what each role mounts, one entry for each folder."""
    users: dict[Mount, list[str]] = {}
    for role, found in mounts.items():
        for mount in found:
            users.setdefault(mount, []).append(role)
    volumes: dict[str, dict[str, Any]] = {}
    checkpoints = _find_checkpoints(users, leader)
    for mount, named in users.items():
        name = "checkpoints" if mount == checkpoints else _free_name(mount.name, {*volumes, "checkpoints"})
        settings: dict[str, Any] = {"existingClaim": mount.claim, "mountPath": mount.path}
        settings |= {"subPath": mount.sub_path} if mount.sub_path else {}
        settings |= {"readOnly": True} if mount.read_only else {}
        # Parameter servers write their part of every checkpoint, so all roles mount these.
        settings |= {"roles": sorted(set(named))} if set(named) != set(roles) and name != "checkpoints" else {}
        volumes[name] = settings
    return volumes


def _find_checkpoints(users: Mapping[Mount, list[str]], leader: str) -> Mount | None:
    """Return the folder that the leader writes its checkpoints to, as far as names tell."""
    for mount, roles in users.items():
        words = re.split(r"[^a-z0-9]+", f"{mount.name} {mount.path}".lower())
        if leader in roles and not mount.read_only and any(_CHECKPOINTS.fullmatch(word) for word in words):
            return mount
    return None


def _free_name(name: str, taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")[:26].strip("-") or "volume"
    plain = f"{plain}-volume" if plain in ("log", "state", "checkpoints") else plain
    number = 1
    found = plain
    while found in taken:
        number += 1
        found = f"{plain}-{number}"
    return found
