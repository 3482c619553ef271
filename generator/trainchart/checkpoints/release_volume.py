"""Which volume holds the checkpoints or logs of a release, and what a pod needs that mounts it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from trainchart.check.objects import mapping_at, mappings_at
from trainchart.cluster.checkpoint_folders import find_claim, find_mount, read_variable, training_containers
from trainchart.cluster.snapshot import Object, has_ended, is_controllers, is_training_set, label, name_of
from trainchart.errors import Conflict, NotFound, ToolError, TrainchartError
from trainchart_runtime.contract import (
    CHECKPOINTS_DIR,
    INSTANCE_LABEL,
    NAME_LABEL,
    TENSORBOARD_DIR,
    TRAINING_CONTAINER,
)
from trainchart_runtime.pod_problems import find_claims

_CONTENTS = {CHECKPOINTS_DIR: "checkpoints", TENSORBOARD_DIR: "logs"}
"""What lies in the folder that a variable of the training containers names; claims are called after it."""
_LAUNCHER = "launcher"
"""The init container that brings the launcher from the runtime image."""
_MANY = {"ReadWriteMany", "ReadOnlyMany"}
_ONE_POD = "ReadWriteOncePod"
_SHOWN = 8


@dataclass(frozen=True)
class ReleaseVolume:
    """A claim with the checkpoints, or the logs for TensorBoard, of one release."""

    release: str
    namespace: str
    claim: str
    sub_path: str = ""
    """Folder of the volume that is mounted; "" for its root."""
    folder: str = ""
    """Folder below what is mounted."""
    image: str = ""
    """An image with Python: the runtime image, or else the training image; "" where the release is uninstalled."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Of the pods that mount it; empty where the release is uninstalled."""

    @property
    def training_image(self) -> str:
        """The image that the training runs in; "" where the release is uninstalled."""
        return next(_images(self.template, "containers", TRAINING_CONTAINER), "")

    @property
    def called(self) -> str:
        """What the folder is called in results and messages."""
        parts = (f"claim {self.claim}", self.sub_path.strip("/"), self.folder.strip("/"))
        return "/".join(filter(None, parts))


def find_volume(
    release: str,
    namespace: str,
    chart: str,
    sets: Sequence[Object],
    jobs: Sequence[Object],
    claims: Sequence[Object],
    *,
    variable: str = CHECKPOINTS_DIR,
) -> ReleaseVolume:
    """Return the volume of a release by its StatefulSets, or by the labels of its claims where those are gone.

    `variable` names the folder in the training containers: CHECKPOINTS_DIR or TENSORBOARD_DIR.

    Raises:
        NotFound: there is no such release, and no claim that it left.
        ToolError: the release has no such folder, or has it elsewhere than in a claim.
    """
    own = [each for each in sets if chart in ("", label(each, NAME_LABEL))]
    charts = sorted({label(each, NAME_LABEL) for each in own})
    if len(charts) > 1:
        names = ", ".join(f"{release}/{each}" for each in charts)
        raise NotFound(f"the release {release} holds several training runs", hint=f"name one of them: {names}")
    if own:
        image = next(_find_images(own, [each for each in jobs if label(each, NAME_LABEL) in charts]), "")
        return _find_mounted(release, namespace, own, image, variable)
    left = [each for each in claims if chart in ("", label(each, NAME_LABEL))]
    claim = _choose_claim(release, namespace, left, variable)
    return ReleaseVolume(release, namespace, claim)


def _find_mounted(release: str, namespace: str, sets: Sequence[Object], image: str, variable: str) -> ReleaseVolume:
    contents = _CONTENTS[variable]
    problem: TrainchartError = ToolError(f"the release {release} keeps no {contents}")
    for each in sets:
        template = mapping_at(each, "spec", "template")
        for container in training_containers(template):
            folder = read_variable(container, variable)
            if "://" in folder:
                problem = ToolError(
                    f"{folder} is in an object store, which this command cannot read", hint="copy it to a folder"
                )
            mount = find_mount(container, folder)
            if not folder or mount is None:
                continue
            claim = find_claim(template, str(mount.get("name")))
            if not claim:
                problem = ToolError(f"the {contents} of {release} are in {folder}, which is not a claim")
                continue
            rest = PurePosixPath(folder).relative_to(str(mount["mountPath"]))
            below = "" if rest == PurePosixPath() else str(rest)
            return ReleaseVolume(release, namespace, claim, str(mount.get("subPath") or ""), below, image, template)
    raise problem


def _find_images(sets: Iterable[Object], jobs: Iterable[Object]) -> Iterator[str]:
    """Yield images of a release that have Python, the smallest first."""
    for job in filter(is_controllers, jobs):
        yield from _images(mapping_at(job, "spec", "template"), "containers", "controller")
    for each in sets:
        yield from _images(mapping_at(each, "spec", "template"), "initContainers", _LAUNCHER)
    for each in sets:
        yield from _images(mapping_at(each, "spec", "template"), "containers", TRAINING_CONTAINER)


def _images(template: Object, kind: str, name: str) -> Iterator[str]:
    for container in mappings_at(template, "spec", kind):
        if container.get("name") == name and container.get("image"):
            yield str(container["image"])


def borrow_settings(volume: ReleaseVolume, sets: Iterable[Object], jobs: Iterable[Object]) -> tuple[str, ReleaseVolume]:
    """Return the newest release of StatefulSets, and the volume with its image and pod template; "" where none is."""
    found = [
        (str(mapping_at(each, "metadata").get("creationTimestamp") or ""), label(each, INSTANCE_LABEL), each)
        for each in sets
        if is_training_set(each) and any(training_containers(mapping_at(each, "spec", "template")))
    ]
    if not found:
        return "", volume
    _, lender, chosen = max(found, key=lambda each: each[:2])
    image = next(_find_images([chosen], [job for job in jobs if label(job, INSTANCE_LABEL) == lender]), "")
    return lender, replace(volume, image=image, template=mapping_at(chosen, "spec", "template"))


def _choose_claim(release: str, namespace: str, claims: Sequence[Object], variable: str) -> str:
    names = sorted(map(name_of, claims))
    # Logs without a volume of their own lie beside the checkpoints.
    wanted = dict.fromkeys((_CONTENTS[variable], _CONTENTS[CHECKPOINTS_DIR]))
    likely = next(filter(None, ([name for name in names if name.endswith(f"-{each}")] for each in wanted)), names)
    if len(likely) == 1:
        return likely[0]
    if not names:
        raise NotFound(
            f"there is no training run {release!r} in namespace {namespace}, and no claim that it left",
            hint="see: trainchart list -A; for a claim that is not the release's own: --claim NAME",
        )
    raise NotFound(
        f"the release {release} has left several claims, and it is unclear which holds {_CONTENTS[variable]}",
        hint=f"name one: --claim {' or '.join(likely[:_SHOWN])}",
    )


def choose_node(claim: Object, pods: Iterable[Object]) -> str:
    """Return the node on which a further pod can mount a claim; "" where any can, as far as its access mode says.

    Raises:
        NotFound: nothing was ever written to the claim, or it is being deleted.
        Conflict: it serves one pod only, and another one has it.
    """
    name, phase = name_of(claim), str(mapping_at(claim, "status").get("phase") or "Pending")
    if mapping_at(claim, "metadata").get("deletionTimestamp"):
        raise NotFound(f"the claim {name} is being deleted", hint="it is removed when no pod uses it any more")
    if phase != "Bound":
        hint = "no pod has written to it yet" if phase == "Pending" else "its volume is gone"
        raise NotFound(
            f"the claim {name} has no volume: it is {phase}", hint=f"{hint}; see: kubectl describe pvc {name}"
        )
    modes = set(mapping_at(claim, "spec").get("accessModes") or ())
    if modes & _MANY:
        return ""
    for pod in pods:
        node = str(mapping_at(pod, "spec").get("nodeName") or "")
        if node and not has_ended(pod) and name in find_claims(pod):
            if _ONE_POD in modes:
                raise Conflict(
                    f"the claim {name} serves one pod at a time ({_ONE_POD}), and {name_of(pod)} uses it",
                    hint="wait until the run has ended",
                )
            return node
    return ""


def find_writers(volume: ReleaseVolume, pods: Iterable[Object]) -> list[str]:
    """Return the pods that may write there: those that have not ended and mount it, but not only for reading.

    One that mounts another folder of the same claim is not one of them.
    """
    return [name_of(pod) for pod in pods if not has_ended(pod) and any(_find_writable(pod, volume))]


def _find_writable(pod: Object, volume: ReleaseVolume) -> Iterator[str]:
    """Yield the folders of the claim, "" for its root, that a pod mounts for writing and that hold the checkpoints."""
    place = PurePosixPath("/", volume.sub_path, volume.folder)
    for source in mappings_at(pod, "spec", "volumes"):
        claim = mapping_at(source, "persistentVolumeClaim")
        if claim.get("claimName") != volume.claim or claim.get("readOnly"):
            continue
        for kind in ("containers", "initContainers"):
            for container in mappings_at(pod, "spec", kind):
                for mount in mappings_at(container, "volumeMounts"):
                    mounted = PurePosixPath("/", str(mount.get("subPath") or ""))
                    is_there = mounted.is_relative_to(place) or place.is_relative_to(mounted)
                    if mount.get("name") == source.get("name") and not mount.get("readOnly") and is_there:
                        yield str(mounted)
