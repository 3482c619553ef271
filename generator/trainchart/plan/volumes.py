"""Volumes of a spec that cannot serve the pods which mount them, each with its reason and the way out. Pure.

Helm's part for those who install is `refuseVolumes` in templates/_refusals_volumes.tpl.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trainchart.quantities import parse_quantity
from trainchart.spec.document import Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.section import PLACEHOLDER_PATTERN, PLACEHOLDERS
from trainchart.spec.settings import EveryPodSettings, RoleSettings, VolumeSettings

VOLUME_NAME_PATTERN = r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?"
RESERVED_FOLDERS = (
    "/app",
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
)
RESERVED_VOLUMES = ("log", "state")
"""Volumes whose variable TRAINCHART_<NAME>_DIR would be one that the chart sets itself."""
HOSTNAME = "kubernetes.io/hostname"
NO_CLASS = ("", "-")
"""Storage classes of an ephemeral volume that is a folder on the node's disk."""

Problem = tuple[Path, str, str]
"""Path, message and hint."""


def find_volume_problems(spec: ModelSpec) -> Iterator[Problem]:
    """Yield path, message and hint of each setting of volumes that is wrong."""
    for name, volume in spec.volumes.items():
        yield from _names(spec, name, volume)
        yield from _sources(name, volume)
        yield from _ephemeral(spec, name, volume)
        yield from _access(spec, name, volume)
    for role, settings in spec.roles.items():
        yield from _room(spec, role, settings)
    yield from _shared_state(spec)
    yield from _mounts(spec)


def _names(spec: ModelSpec, name: str, volume: VolumeSettings) -> Iterator[Problem]:
    path: Path = ("volumes", name)
    if not re.fullmatch(VOLUME_NAME_PATTERN, name):
        yield path, f"volume name {name!r} is not a short DNS label", "lower-case letters, digits, dashes"
    if name in RESERVED_VOLUMES:
        yield path, f"a volume cannot be called {name}", "the TRAINCHART_*_DIR of that name is already used"
    if ".." in PurePosixPath(volume.sub_path).parts or volume.sub_path.startswith("/"):
        yield (
            (*path, "subPath"),
            f"{_dotted(name, 'subPath')}: {volume.sub_path!r} is not a folder inside the volume",
            "",
        )
    for word in sorted(set(re.findall(PLACEHOLDER_PATTERN, volume.sub_path)) - set(PLACEHOLDERS)):
        yield (*path, "subPath"), f"{word} is not known here", f"use {' or '.join(PLACEHOLDERS)}"
    if not volume.uri and not volume.mount_path.startswith("/"):
        given = f"{_dotted(name, 'mountPath')}: {volume.mount_path!r}"
        what = f"{given} is not an absolute path" if volume.mount_path else f"{name} has no mountPath"
        yield (*path, "mountPath"), what, f"for example mountPath: /{name}"
    for role in volume.roles:
        if role not in spec.roles:
            yield (*path, "roles"), f"volume {name} lists role {role}, which model {spec.name} does not define", ""


def _sources(name: str, volume: VolumeSettings) -> Iterator[Problem]:
    sources = [key for key, value in (("existingClaim", volume.existing_claim), ("uri", volume.uri)) if value]
    if volume.ephemeral:
        for key in sources:
            yield (
                ("volumes", name, key),
                f"volume {name} is ephemeral, so each pod gets its own empty volume, and {key} is not used",
                f"leave out {key} or ephemeral",
            )
        if volume.size == "":
            yield ("volumes", name), f"ephemeral volume {name} has no size", "for example size: 20Gi"
        return
    sources += ["size"] if volume.size != "" else []
    if len(sources) != 1:
        what = "has no source" if not sources else f"has several sources: {', '.join(sources)}"
        yield ("volumes", name), f"volume {name} {what}", "set exactly one of size, existingClaim or uri"


def _ephemeral(spec: ModelSpec, name: str, volume: VolumeSettings) -> Iterator[Problem]:
    """Check that nothing is expected of an ephemeral volume that only a claim can do."""
    if not volume.ephemeral:
        return
    path: Path = ("volumes", name)
    if name == "checkpoints":
        what = "checkpoints is ephemeral, so what a pod saves is lost with the pod, and no other pod can read it"
        yield (
            (*path, "ephemeral"),
            what,
            "use a claim, and an ephemeral volume with another name for data that may be lost",
        )
        return
    if volume.keep:
        what = f"volume {name} is ephemeral, so it is removed with its pod and cannot be kept"
        yield (*path, "keep"), what, "leave out keep, or use a claim"
    if volume.read_only:
        what = f"volume {name} is ephemeral, so it starts empty, and with readOnly it stays empty"
        yield (*path, "readOnly"), what, "leave out readOnly"
    if spec.tensorboard.enabled and name == spec.log_volume:
        what = f"volume {name} is ephemeral, so TensorBoard cannot read it"
        yield (*path, "ephemeral"), what, "use a claim that TensorBoard and the pods share"


def _access(spec: ModelSpec, name: str, volume: VolumeSettings) -> Iterator[Problem]:
    path: Path = ("volumes", name, "accessMode")
    pods = _mounting_pods(spec, name, volume)
    if volume.ephemeral or volume.uri:
        return
    is_together = volume.access_mode == "ReadWriteOnce" and _are_on_one_node(spec, name, volume)
    if volume.access_mode.startswith("ReadWriteOnce") and pods > 1 and not is_together:
        serves = "one pod" if volume.access_mode == "ReadWriteOncePod" else "one node"
        yield (
            path,
            f"{pods} pods mount {name}, but a {volume.access_mode} claim serves {serves} only",
            "leave accessMode out: it follows from the strategy, here ReadWriteMany, which needs a storage class such "
            f"as CephFS or GlusterFS. ReadWriteOnce serves several pods only if their nodeSelector has one {HOSTNAME}",
        )
    if volume.access_mode == "ReadOnlyMany" and not volume.read_only:
        yield path, f"{name} is writable, but its access mode is ReadOnlyMany", "set readOnly: true"


def _room(spec: ModelSpec, role: str, settings: RoleSettings) -> Iterator[Problem]:
    """Check that a limit of the node's disk leaves room for the ephemeral volumes that lie on it."""
    limit, request = settings.ephemeral_storage_limit, settings.ephemeral_storage
    mounted = {
        name: parse_quantity(volume.size)
        for name, volume in spec.volumes.items()
        if volume.ephemeral and volume.storage_class in NO_CLASS and (not volume.roles or role in volume.roles)
    }
    room, wanted = parse_quantity(limit), parse_quantity(request)
    if limit == "" or request == "" or not mounted or room is None or wanted is None:
        return
    if wanted <= room < wanted + sum(size or 0 for size in mounted.values()):
        yield (
            ("roles", role, "ephemeralStorageLimit"),
            f"{limit} of the node's disk leaves no room for {request} and the ephemeral {', '.join(mounted)}",
            "leave out ephemeralStorageLimit, or raise it",
        )


def _dotted(name: str, key: str) -> str:
    return f"volumes.{name}.{key}"


def _mounting_pods(spec: ModelSpec, name: str, volume: VolumeSettings) -> int:
    """Return how many pods mount `volume`, TensorBoard included."""
    pods = sum(settings.replicas for role, settings in spec.roles.items() if not volume.roles or role in volume.roles)
    return pods + (1 if spec.tensorboard.enabled and name == spec.log_volume else 0)


def _are_on_one_node(spec: ModelSpec, name: str, volume: VolumeSettings) -> bool:
    """Say whether a node is named that all pods which mount `volume` are bound to."""
    mounting: list[EveryPodSettings] = [
        settings for role, settings in spec.roles.items() if not volume.roles or role in volume.roles
    ]
    mounting += [spec.tensorboard] if spec.tensorboard.enabled and name == spec.log_volume else []
    nodes = {(settings.node_selector or spec.node_selector).get(HOSTNAME, "") for settings in mounting}
    return len(nodes) == 1 and "" not in nodes


def _shared_state(spec: ModelSpec) -> Iterator[Problem]:
    """The evaluator, TensorBoard and a restarted leader need what others wrote."""
    checkpoints = spec.volumes.get("checkpoints")
    hint = "add volumes.checkpoints with a size, an existingClaim or a uri"
    if "evaluator" in spec.roles and spec.roles["evaluator"].replicas and checkpoints is None:
        yield ("roles", "evaluator"), "an evaluator without shared checkpoints has no work", hint
    if spec.tensorboard.enabled and not spec.log_volume:
        yield ("tensorboard",), "TensorBoard has no summaries to read without a shared volume", hint
    if checkpoints and checkpoints.read_only:
        yield ("volumes", "checkpoints", "readOnly"), "checkpoints cannot be saved to a read-only volume", ""
    if checkpoints and checkpoints.roles:
        # Parameter servers write their shards of every checkpoint, whatever role asks for it.
        missing = [
            role for role in spec.roles if role not in checkpoints.roles and (role != "worker" or role == spec.leader)
        ]
        if missing:
            yield (
                ("volumes", "checkpoints", "roles"),
                f"{' and '.join(missing)} must also mount the checkpoints",
                "leave volumes.checkpoints.roles out, or omit workers only if there is a chief",
            )


def _mounts(spec: ModelSpec) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, volume in spec.volumes.items():
        if volume.uri or not volume.mount_path:
            continue
        path: Path = ("volumes", name, "mountPath")
        place = "/" + posixpath.normpath(volume.mount_path).lstrip("/")
        if place in taken:
            yield path, f"{name} and {taken[place]} are both mounted at {place}", ""
        if place == "/" or any(place == folder or place.startswith(folder + "/") for folder in RESERVED_FOLDERS):
            yield (
                path,
                f"{place} is used by the image or the system",
                f"mount it elsewhere, for example at /data/{name}",
            )
        taken[place] = name
