"""Says where training pods keep their checkpoints, and which other releases write to the same folder. Pure.

Nothing keeps two releases apart that are given one folder: each takes the other's checkpoints for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.snapshot import Object, Objects, has_ended, label, listed, name_of, namespace_of
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


class CheckpointFolder(NamedTuple):
    """A folder that a training writes its checkpoints to."""

    claim: str
    """Empty for an object store."""
    path: str
    """From the root of the claim's volume, without a slash at the start; or the address in an object store."""

    def __str__(self) -> str:
        return "/".join(filter(None, (f"claim {self.claim}", self.path))) if self.claim else self.path


class _Place(NamedTuple):
    """The folder of a pod, and what of the values it comes from."""

    folder: CheckpointFolder
    value: str
    """Path of the value that names the folder."""
    text: str
    """What that value is, "$(TRAINCHART_RELEASE)" filled in."""
    is_own: bool
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


def find_claim(template: Object, volume: str) -> str:
    """Return the claim that a volume of a pod or its template is; "" where it is something else."""
    for each in mappings_at(template, "spec", "volumes"):
        if each.get("name") == volume:
            return str(mapping_at(each, "persistentVolumeClaim").get("claimName") or "")
    return ""


def may_share_folder(pods: Objects, *, with_own: bool = False) -> bool:
    """Return whether pods of a training write to a folder that others may be given as well.

    With `with_own`, a claim that the chart made counts, too: another release can name it as its existingClaim.
    """
    places = [place for pod in listed(pods) if not has_ended(pod) for place in _find_places(pod)]
    return any(with_own or not place.is_own for place in places)


def find_shared_folders(report: Report, own: Objects, pods: Objects) -> Iterator[str]:
    """Yield each folder to which pods of the training and of others write, since when, and what to do.

    `pods` are training pods of any release; those of `own` may be among them.
    """
    key = report.key
    mine: dict[CheckpointFolder, list[Object]] = {}
    others: dict[CheckpointFolder, list[Object]] = {}
    places: dict[CheckpointFolder, _Place] = {}
    for pod in listed(own):
        for place in _find_places(pod) if not has_ended(pod) else ():
            mine.setdefault(place.folder, []).append(pod)
            places[place.folder] = place
    for pod in listed(pods) if places else ():
        is_other = (label(pod, INSTANCE_LABEL), label(pod, NAME_LABEL)) != (key.release, key.chart)
        for place in _find_places(pod) if is_other and not has_ended(pod) else ():
            if namespace_of(pod) == key.namespace and place.folder in places:
                others.setdefault(place.folder, []).append(pod)
    for folder, found in others.items():
        yield _describe(report, places[folder], mine[folder], found)


def _find_places(pod: Object) -> Iterator[_Place]:
    """Yield the folder of checkpoints of a pod, if it can be told and may be written to."""
    for container in training_containers(pod):
        path = read_variable(container, CHECKPOINTS_DIR)
        if not path or "$(" in path:
            continue
        if "://" in path:
            address = path.rstrip("/")
            yield _Place(CheckpointFolder("", address), "volumes.checkpoints.uri", address, is_own=False)
            continue
        mount = find_mount(container, path)
        if mount is None or mount.get("readOnly") or mount.get("subPathExpr"):
            continue
        volume, sub_path = str(mount.get("name")), str(mount.get("subPath") or "").strip("/")
        below = PurePosixPath(path).relative_to(str(mount["mountPath"]))
        if claim := find_claim(pod, volume):
            folder = CheckpointFolder(claim, str(PurePosixPath("/", sub_path, below)).strip("/"))
            value = f"volumes.{volume.removeprefix(_VOLUME)}.subPath"
            yield _Place(folder, value, sub_path, is_own=claim == _name_own_claim(pod, volume))


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
    if any(each.is_own for pod in others for each in _find_places(pod)):
        return f"Suspend this one now: trainchart suspend {report.key.release} {where}"
    return f"Suspend one of them now: trainchart suspend {report.key.release} {where}, or {releases[0]}"


def _name_training(report: Report, pod: Object) -> str:
    release, chart = label(pod, INSTANCE_LABEL), label(pod, NAME_LABEL)
    return f"{release}/{chart}" if release == report.key.release else release


def _find_start(pods: Iterable[Object]) -> float:
    """Return when the first of these pods was given to its node; _NEVER where none was."""
    starts = (parse_time(mapping_at(pod, "status").get("startTime")) for pod in pods)
    return min((start for start in starts if start), default=_NEVER)
