"""Says where training pods keep their checkpoints, and which other releases write to the same folder. Pure.

Nothing keeps two releases apart that are given one folder: each takes the other's checkpoints for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.snapshot import Object, Objects, has_ended, label, listed, name_of, namespace_of
from trainchart.cluster.storage_folders import OF_NODE, StorageFolder, find_folder
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.contract import (
    CHECKPOINTS_DIR,
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    NAME_LABEL,
    TRAINING_CONTAINER,
)
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names

_VOLUME = "volume-"
"""What charts put before the name of a volume of the values."""
_RELEASE = "$(TRAINCHART_RELEASE)"
_NEVER = float("inf")
_UNKNOWN: Mapping[str, StorageFolder] = {}


class _Place(NamedTuple):
    """The folder of a pod, and what of the values it comes from."""

    folder: StorageFolder
    value: str
    """Path of the value that names the folder."""
    text: str
    """What that value is, "$(TRAINCHART_RELEASE)" filled in."""
    claim: str = ""
    is_own: bool = False
    """Whether the pod's chart made the claim."""


def training_containers(template: Object) -> Iterator[Object]:
    """Yield the training container of a pod, or of its template."""
    containers = mappings_at(template, "spec", "containers")
    return (each for each in containers if each.get("name") == TRAINING_CONTAINER)


def read_variable(container: Object, name: str) -> str:
    """Return the value of a container's variable; "" where it has none."""
    found = (each.get("value") for each in mappings_at(container, "env") if each.get("name") == name)
    return next((str(value) for value in found if value), "")


def find_mount(container: Object, folder: str) -> Object | None:
    """Return the mount that a folder lies in."""
    mounts = [
        each
        for each in mappings_at(container, "volumeMounts")
        if each.get("mountPath") and PurePosixPath(folder).is_relative_to(str(each["mountPath"]))
    ]
    return max(mounts, key=lambda each: len(str(each["mountPath"])), default=None)


def find_volume_source(template: Object, volume: str) -> Object:
    """Return a volume of a pod or of its template; an empty mapping where there is none of that name."""
    return next((each for each in mappings_at(template, "spec", "volumes") if each.get("name") == volume), {})


def find_claim(template: Object, volume: str) -> str:
    """Return the claim that a volume of a pod or its template is; "" where it is something else."""
    return str(mapping_at(find_volume_source(template, volume), "persistentVolumeClaim").get("claimName") or "")


def may_share_folder(pods: Objects, *, with_own: bool = False) -> bool:
    """Return whether pods of a training write to a folder that others may be given as well.

    With `with_own`, a claim that the chart made counts, too: another release can name it as its existingClaim.
    """
    return any(with_own or not place.is_own for _, place in _find_written(pods))


def list_claims_to_compare(report: Report, own: Objects, pods: Objects) -> list[str]:
    """Return the claims of the training and of others that may lead to one volume; none that a chart made."""
    mine = {place.claim for _, place in _find_written(own) if place.claim and not place.is_own}
    written = [(pod, place) for pod, place in _find_written(pods) if _is_other(report, pod)]
    others = {place.claim for _, place in written if place.claim and not place.is_own} - mine
    return sorted(mine | others) if mine and others else []


def find_shared_folders(
    report: Report, own: Objects, pods: Objects, storage: Mapping[str, StorageFolder] = _UNKNOWN
) -> Iterator[str]:
    """Yield each folder to which pods of the training and of others write, since when, and what to do.

    `pods` are training pods of any release; those of `own` may be among them. `storage` says where claims lead to, as
    far as that is known.
    """
    mine: dict[StorageFolder, list[Object]] = {}
    others: dict[StorageFolder, list[Object]] = {}
    places: dict[StorageFolder, _Place] = {}
    for pod, place in _find_written(own, storage):
        mine.setdefault(place.folder, []).append(pod)
        places[place.folder] = place
    for pod, place in _find_written(pods, storage) if places else ():
        if place.folder in places and _is_other(report, pod):
            others.setdefault(place.folder, []).append(pod)
    for folder, found in others.items():
        if folder.storage != OF_NODE or _list_nodes(mine[folder]) & _list_nodes(found):
            yield _describe(report, places[folder], mine[folder], found)


def _is_other(report: Report, pod: Object) -> bool:
    """Return whether a pod is of another training in the same namespace."""
    training = (label(pod, INSTANCE_LABEL), label(pod, NAME_LABEL))
    return namespace_of(pod) == report.key.namespace and training != (report.key.release, report.key.chart)


def _list_nodes(pods: Iterable[Object]) -> set[str]:
    return {str(mapping_at(pod, "spec").get("nodeName") or "") for pod in pods} - {""}


def _find_written(pods: Objects, storage: Mapping[str, StorageFolder] = _UNKNOWN) -> Iterator[tuple[Object, _Place]]:
    """Yield the pods that have not ended, each with the folder of its checkpoints, if it may write there."""
    for pod in listed(pods):
        for container in training_containers(pod) if not has_ended(pod) else ():
            place = _find_place(pod, container, storage)
            if place is not None:
                yield pod, place


def _find_place(pod: Object, container: Object, storage: Mapping[str, StorageFolder]) -> _Place | None:
    path = read_variable(container, CHECKPOINTS_DIR)
    if not path or "$(" in path:
        return None
    if "://" in path:
        address = path.rstrip("/")
        return _Place(StorageFolder("", address), "volumes.checkpoints.uri", address)
    mount = find_mount(container, path)
    if mount is None or mount.get("readOnly") or mount.get("subPathExpr"):
        return None
    volume, sub_path = str(mount.get("name")), str(mount.get("subPath") or "").strip("/")
    source = find_volume_source(pod, volume)
    claim = find_claim(pod, volume)
    root = storage.get(claim) or StorageFolder(f"claim {claim}", "") if claim else find_folder(source)
    if root is None or any(mapping_at(source, kind).get("readOnly") for kind in ("persistentVolumeClaim", "nfs")):
        return None
    below = PurePosixPath(path).relative_to(str(mount["mountPath"]))
    value = f"volumes.{volume.removeprefix(_VOLUME)}.subPath"
    is_own = bool(claim) and claim == _name_own_claim(pod, volume)
    return _Place(root.enter(sub_path, str(below)), value, sub_path, claim, is_own)


def _name_own_claim(pod: Object, volume: str) -> str:
    """Return what a chart calls the claim that it makes for a volume; that of a long release is not known."""
    start, _, _ = name_of(pod).rpartition(f"-{label(pod, COMPONENT_LABEL)}-")
    return f"{start}-{volume.removeprefix(_VOLUME)}"


def _describe(report: Report, place: _Place, own: Sequence[Object], others: Sequence[Object]) -> str:
    names = sorted({_name_training(report, pod) for pod in others})
    since = max(_find_start(own), _find_start(others))
    is_now = since < _NEVER
    verb, when = ("shares", f"since {describe_time(since)}") if is_now else ("will share", "once both run")
    writes = "writes" if len(others) == 1 else "write"
    steps = (
        f"Before you resume it, give it a folder of its own, which is empty at first: in its values, set {place.value} "
        f"to {'/'.join(filter(None, (place.text, _RELEASE)))}"
    )
    return (
        f"{verb} its checkpoint folder with {list_names(names)} {when}: {list_names(list(map(name_of, others)))} "
        f"{writes} to {place.folder} as well, and the releases overwrite and remove each other's checkpoints. "
        f"{_describe_suspension(report, place, others)}. {steps}"
    )


def _describe_suspension(report: Report, place: _Place, others: Iterable[Object]) -> str:
    """Return which release has to leave the folder, with the command that suspends it."""
    where = f"-n {report.key.namespace}"
    releases = sorted({label(pod, INSTANCE_LABEL) for pod in others})
    if len(releases) > 1:
        return f"Suspend all but one of them now: trainchart suspend RELEASE {where}"
    if place.is_own:
        return f"Suspend it now: trainchart suspend {releases[0]} {where}"
    if any(each.is_own for _, each in _find_written(tuple(others))):
        return f"Suspend this one now: trainchart suspend {report.key.release} {where}"
    return f"Suspend one of them now: trainchart suspend {report.key.release} {where}, or {releases[0]}"


def _name_training(report: Report, pod: Object) -> str:
    release, chart = label(pod, INSTANCE_LABEL), label(pod, NAME_LABEL)
    return f"{release}/{chart}" if release == report.key.release else release


def _find_start(pods: Iterable[Object]) -> float:
    """Return when the first of these pods was given to its node; _NEVER where none was."""
    starts = (parse_time(mapping_at(pod, "status").get("startTime")) for pod in pods)
    return min((start for start in starts if start), default=_NEVER)
