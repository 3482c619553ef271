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
_Training = tuple[str, str]
"""Release and chart."""
Writers = Mapping[tuple[str, StorageFolder], Mapping[_Training, Sequence[Object]]]
"""Namespace and folder → training → its pods that write there."""


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


def sort_by_folder(pods: Objects, storage: Mapping[str, StorageFolder] = _UNKNOWN) -> Writers:
    """Return the training pods, of any release, by the folder that each writes its checkpoints to.

    `storage` says where claims lead to, as far as that is known.
    """
    writers: dict[tuple[str, StorageFolder], dict[_Training, list[Object]]] = {}
    for pod, place in _find_written(pods, storage):
        trainings = writers.setdefault((namespace_of(pod), place.folder), {})
        trainings.setdefault(_name_training(pod), []).append(pod)
    return writers


def find_shared_folders(
    report: Report, own: Objects, writers: Writers, storage: Mapping[str, StorageFolder] = _UNKNOWN
) -> Iterator[str]:
    """Yield each folder to which pods of the training and of others write, since when, and what to do.

    The pods of `own` may be among `writers`; `storage` is what those were sorted by.
    """
    mine: dict[StorageFolder, list[Object]] = {}
    places: dict[StorageFolder, _Place] = {}
    for pod, place in _find_written(own, storage):
        mine.setdefault(place.folder, []).append(pod)
        places[place.folder] = place
    key = report.key
    for folder, place in places.items():
        trainings = writers.get((key.namespace, folder), {})
        others = {name: pods for name, pods in trainings.items() if name != (key.release, key.chart)}
        if folder.storage == OF_NODE:
            nodes = _list_nodes(mine[folder])
            others = {name: pods for name, pods in others.items() if nodes & _list_nodes(pods)}
        if others:
            yield _describe(report, place, mine[folder], others)


def _is_other(report: Report, pod: Object) -> bool:
    """Return whether a pod is of another training in the same namespace."""
    key = report.key
    return namespace_of(pod) == key.namespace and _name_training(pod) != (key.release, key.chart)


def _name_training(pod: Object) -> _Training:
    return label(pod, INSTANCE_LABEL), label(pod, NAME_LABEL)


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


def _describe(
    report: Report, place: _Place, own: Sequence[Object], others: Mapping[_Training, Sequence[Object]]
) -> str:
    names = sorted(f"{release}/{chart}" if release == report.key.release else release for release, chart in others)
    pods = [pod for each in others.values() for pod in each]
    since = max(_find_start(own), _find_start(pods))
    is_now = since < _NEVER
    verb, when = ("shares", f"since {describe_time(since)}") if is_now else ("will share", "once both run")
    writers, writes = list_names(list(map(name_of, pods))), "writes" if len(pods) == 1 else "write"
    return (
        f"{verb} its checkpoint folder with {list_names(names)} {when}: {writers} {writes} to {place.folder} as "
        "well, and the releases overwrite and remove each other's checkpoints. "
        f"{_describe_suspension(report, place, others)}. Before you resume it, give it a folder of its own, which is "
        f"empty at first: in its values (helm upgrade), set {place.value} to "
        f"{'/'.join(filter(None, (place.text, _RELEASE)))}"
    )


def _describe_suspension(report: Report, place: _Place, others: Mapping[_Training, Sequence[Object]]) -> str:
    """Return which release has to leave the folder, with the command that suspends it."""
    where = f"-n {report.key.namespace}"
    releases = sorted({release for release, _ in others})
    if len(releases) > 1:
        return f"Suspend all but one of them now: trainchart suspend RELEASE {where}"
    if place.is_own:
        return f"Suspend it now: trainchart suspend {releases[0]} {where}"
    pods = tuple(pod for each in others.values() for pod in each)
    if any(each.is_own for _, each in _find_written(pods)):
        return f"Suspend this one now: trainchart suspend {report.key.release} {where}"
    return f"Suspend one of them now: trainchart suspend {report.key.release} {where}, or {releases[0]}"


def _find_start(pods: Iterable[Object]) -> float:
    """Return when the first of these pods was given to its node; _NEVER where none was."""
    # Times of the API sort as text, and only one is parsed.
    starts = filter(None, (str(mapping_at(pod, "status").get("startTime") or "") for pod in pods))
    return parse_time(min(starts, default="")) or _NEVER
