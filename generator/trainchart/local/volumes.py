"""Turns a pod's volumes and mounts into folders and files below the release folder.

Pure: decides paths and contents; release_folder.py makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from trainchart.local.notices import Notices
from trainchart.local.objects import PodIdentity, RenderedData, TrainingSet, read_pod_field
from trainchart.variables import expand_variables
from trainchart_runtime import contract


@dataclass(frozen=True)
class PlannedFile:
    path: str
    content: bytes
    is_secret: bool = False


@dataclass(frozen=True)
class Storage:
    """Where volumes go: claims are shared and outlive the run, all the rest belongs to one pod."""

    claims_folder: PurePosixPath
    pod_folder: PurePosixPath
    chosen_claims: Mapping[str, str]
    """Name of a claim, whole or short, to a folder that the user chose for it."""
    claim_prefix: str
    """What the short names of claims leave out."""

    def find_chosen(self, claim: str) -> str | None:
        for name in claim_names(claim, self.claim_prefix):
            if name in self.chosen_claims:
                return self.chosen_claims[name]
        return None


def leads_out(path: str) -> bool:
    """Tell whether a path of a volume, or of a working folder, could lead out of the folder that it starts in."""
    return path.startswith("/") or ".." in path.split("/") or "\0" in path


def claim_names(claim: str, prefix: str) -> tuple[str, ...]:
    """Return the names by which a user may call a claim: its own, and the short one where it has one."""
    short = claim.removeprefix(prefix)
    return (claim, short) if short and short != claim else (claim,)


@dataclass(frozen=True)
class MountedVolumes:
    folders: tuple[str, ...]
    files: tuple[PlannedFile, ...]
    paths: tuple[tuple[str, str], ...]
    """(path in the container, path here)"""
    claims: Mapping[str, str]
    """Claim name to its folder; a volume that only a cluster has counts as the claim `volume-<name>`."""
    outputs: tuple[str, ...]
    """Folders of the claims that the container may write to."""


@dataclass(frozen=True)
class _Volume:
    folder: PurePosixPath
    files: tuple[PlannedFile, ...] = ()
    claim: str = ""
    holds_files: bool = False
    """A sub-path of it may be a file, so it is not made as a folder."""


def resolve_volumes(
    training_set: TrainingSet,
    pod: PodIdentity,
    data: RenderedData,
    storage: Storage,
    variables: Mapping[str, str],
    notices: Notices,
) -> MountedVolumes:
    """Return folders, files and path pairs for every volume that the training container mounts."""
    planner = _VolumePlanner(pod, data, storage, notices)
    declared = {str(item["name"]): item for item in training_set.pod_spec.get("volumes") or []}
    for template in training_set.claim_templates:
        claim = f"{template}-{pod.name}"
        declared[template] = {"name": template, "persistentVolumeClaim": {"claimName": claim, "made": True}}
    folders: list[str] = []
    files: dict[str, PlannedFile] = {}
    paths: list[tuple[str, str]] = []
    claims: dict[str, str] = {}
    outputs: dict[str, None] = {}
    for mount in training_set.container.get("volumeMounts") or []:
        name, mount_path = str(mount.get("name")), str(mount.get("mountPath")).rstrip("/")
        if mount_path == contract.LAUNCHER_PATH:
            continue  # copied there by an init container in a cluster; here this machine's launcher stands for it
        if name not in declared:
            notices.refuse(
                f"{pod.role} mounts the volume {name!r} at {mount_path}, but no volume has this name",
                where=training_set.source,
                hint="Kubernetes would refuse this pod as well",
            )
            continue
        volume = planner.plan_volume(declared[name])
        sub_path = str(mount.get("subPath") or expand_variables(str(mount.get("subPathExpr") or ""), variables))
        planner.require_inside(f"the subPath of volume {name!r}", sub_path)
        target = volume.folder / sub_path if sub_path else volume.folder
        paths.append((mount_path, str(target)))
        folders.append(str(volume.folder if volume.holds_files else target))
        files.update({item.path: item for item in volume.files})
        if volume.claim:
            claims[volume.claim] = str(volume.folder)
            if not mount.get("readOnly"):
                outputs[str(volume.folder)] = None
    return MountedVolumes(tuple(dict.fromkeys(folders)), tuple(files.values()), tuple(paths), claims, tuple(outputs))


@dataclass(frozen=True)
class _VolumePlanner:
    pod: PodIdentity
    data: RenderedData
    storage: Storage
    notices: Notices

    def require_inside(self, what: str, path: str, *, is_name: bool = False) -> None:
        """Refuse a path that leads out of its folder, and a name that is a path: a run writes into its own."""
        if leads_out(path) or (is_name and (path in ("", ".") or "/" in path)):
            self.notices.refuse(
                f"{what} of {self.pod.role} is {path!r}, which leads outside its folder",
                hint="Kubernetes would refuse this pod as well",
            )

    def plan_volume(self, volume: Mapping[str, Any]) -> _Volume:
        name = str(volume["name"])
        self.require_inside("a volume's name", name, is_name=True)
        own_folder = self.storage.pod_folder / "volumes" / name
        if "persistentVolumeClaim" in volume:
            return self._plan_claim(volume["persistentVolumeClaim"])
        if "emptyDir" in volume or "ephemeral" in volume:
            return _Volume(own_folder)
        sources = volume["projected"].get("sources") or [] if "projected" in volume else [volume]
        if not all(self._is_known(source) for source in sources):
            kinds = ", ".join(sorted({key for key in volume if key != "name"})) or "without a kind"
            claim = f"volume-{name}"
            chosen = self.storage.find_chosen(claim)
            folder = PurePosixPath(chosen) if chosen else self.storage.claims_folder / claim
            if not chosen:
                self.notices.warn(f"volume {name} ({kinds}) exists only in a cluster: here it is the folder {folder}")
            return _Volume(folder, claim=claim)
        files = tuple(
            PlannedFile(str(own_folder / path), content, is_secret)
            for source in sources
            for path, content, is_secret in self._read_source(name, source)
        )
        return _Volume(own_folder, files, holds_files=True)

    @staticmethod
    def _is_known(source: Mapping[str, Any]) -> bool:
        return any(kind in source for kind in ("configMap", "secret", "downwardAPI"))

    def _plan_claim(self, reference: Mapping[str, Any]) -> _Volume:
        claim = str(reference.get("claimName"))
        self.require_inside("a claimName", claim, is_name=True)
        chosen = self.storage.find_chosen(claim)
        folder = PurePosixPath(chosen) if chosen else self.storage.claims_folder / claim
        if not chosen and claim not in self.data.claims and not reference.get("made"):
            self.notices.warn(
                f"the claim {claim} is expected to exist in the cluster; here it is the folder {folder}: "
                f"use your own with `--claim {claim}=FOLDER`"
            )
        return _Volume(folder, claim=claim)

    def _read_source(self, volume: str, source: Mapping[str, Any]) -> Iterator[tuple[str, bytes, bool]]:
        if "downwardAPI" in source:
            for item in source["downwardAPI"].get("items") or []:
                path = str((item.get("fieldRef") or {}).get("fieldPath", ""))
                value = read_pod_field(path, self.pod)
                self.require_inside(f"items.path in volume {volume!r}", str(item.get("path")))
                if value is not None:
                    yield str(item["path"]), value.encode(), False
                else:
                    self.notices.warn(f"{self.pod.role}: {item.get('path')} of volume {volume} is left out")
            return
        is_secret = "secret" in source
        reference = source["secret"] if is_secret else source["configMap"]
        # A volume says secretName where a projected source says name.
        name = str(reference.get("secretName") or reference.get("name", ""))
        table = (self.data.secrets if is_secret else self.data.config_maps).get(name)
        if table is None:
            if not reference.get("optional"):
                kind = "Secret" if is_secret else "ConfigMap"
                self.notices.refuse(
                    f"volume {volume!r} of {self.pod.role} needs the {kind} {name!r}, which the chart lacks",
                    hint="a local run has only what the chart renders: mark it optional, or render it",
                )
            return
        items = reference.get("items")
        keys = [(str(item["key"]), str(item["path"])) for item in items] if items else [(key, key) for key in table]
        for key, path in keys:
            self.require_inside(f"{'items.path' if items else 'a key'} in volume {volume!r}", path, is_name=not items)
            if key in table:
                yield path, table[key], is_secret
            elif not reference.get("optional"):
                self.notices.refuse(f"volume {volume!r} of {self.pod.role} needs the key {key!r} of {name!r}")
