"""The checkpoints of a release on a cluster, in a claim that only pods can read: a helper pod does what is asked."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from trainchart.actions.support import checkpoint_program as program
from trainchart.actions.support.checkpoint_export import check_copy, refuse_damaged
from trainchart.actions.support.checkpoint_pod import Helper, Tell, run_helper
from trainchart.actions.support.checkpoint_work import find_checkpoint
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.check.objects import mapping_at
from trainchart.checkpoints import wire
from trainchart.checkpoints.helper_pod import FOLDER, HelperPod, advise_on_writers
from trainchart.checkpoints.listing import Checkpoint, CheckpointList
from trainchart.checkpoints.release_volume import (
    ReleaseVolume,
    borrow_settings,
    choose_node,
    find_volume,
    find_writers,
)
from trainchart.checkpoints.results import Pruning, Verified
from trainchart.checkpoints.saved_model import SavedModel, parse_saved_model
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.io import kubernetes_api
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_training
from trainchart.cluster.snapshot import Object, has_ended, label, name_of
from trainchart.errors import ClusterError, NotFound, ToolError, Unreachable
from trainchart.host.files import build_tree
from trainchart_runtime.contract import IMAGE_ANNOTATION, INSTANCE_LABEL, NAME_LABEL
from trainchart_runtime.run.judge import list_names
from trainchart_training.saving import catalogue
from trainchart_training.saving.origin import ORIGIN_FILE

_TRIES = 5
"""How often the same place of a file is tried."""
_PROGRESS_SECONDS = 5.0
_SMALL_LIMIT = 64 * 1024 * 1024
"""Bytes of a marker, or of the origin."""
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class HelperOptions:
    """How the claim of a release is found and read, where its objects do not say it."""

    claim: str = ""
    """CLAIM, or CLAIM/FOLDER; empty: that of the release."""
    image: str = ""
    """Empty: the release's runtime or training image."""
    seconds: int = 3600


@dataclass(frozen=True)
class ReleaseCheckpoints:
    """The checkpoints of a release."""

    api: KubernetesApi
    name: str
    """RELEASE, or RELEASE/CHART."""
    volume: ReleaseVolume
    claim: Object
    options: HelperOptions
    tell: Tell

    @property
    def place(self) -> Mapping[str, str]:
        """Where they are, for documents of JSON."""
        volume = self.volume
        return {"release": volume.release, "namespace": volume.namespace, "claim": volume.claim}

    def read_list(self) -> CheckpointList:
        with self._ask(program.LIST) as helper:
            return _parse(wire.parse_list, helper.await_result())

    def read_checkpoint(self, step: int) -> Checkpoint:
        with self._ask(program.LIST, step=step) as helper:
            return find_checkpoint(_parse(wire.parse_list, helper.await_result()), step)

    def verify(self, step: int | None) -> Verified:
        with self._ask(program.VERIFY, step=step) as helper:
            return _parse(wire.parse_verified, helper.await_result())

    def read_saved_model(self) -> SavedModel:
        """Return what the exported model beside the checkpoints says of itself."""
        with self._ask(program.EXPORT) as helper:
            return _parse(parse_saved_model, helper.await_result())

    def export(self, step: int, destination: Path) -> Checkpoint:
        """Copy one checkpoint to a new folder here, which appears when all is there and verified.

        Raises:
            ChecksFailed: it is damaged.
            ToolError: there is no such step, or the destination is not a new or empty folder.
            ClusterError: it cannot be copied.
        """
        copied: list[Checkpoint] = []

        def fill(staged: Path) -> None:
            with self._ask(program.SERVE, step=step) as helper:
                found = _parse(wire.parse_list, helper.await_result())
                copied.append(_receive(helper, found, step, staged, self.tell))
            check_copy(staged, step, found.folder)

        build_tree(destination, fill, is_ours=lambda _: False)
        return copied[0]

    def plan_pruning(self, keep: int) -> Pruning:
        """Return what goes when the `keep` newest whole ones stay. Raises ToolError while a run uses the claim."""
        with self._ask(program.PLAN, keep=keep, alive=self._refuse_used()) as helper:
            return _parse(wire.parse_pruning, helper.await_result())

    def prune(self, pruning: Pruning) -> None:
        """Remove what was planned."""
        planned = {"kept": list(pruning.kept), "removed": list(pruning.removed), "size": pruning.size}
        with self._ask(program.PRUNE, writes=True, alive=self._refuse_used(), **planned) as helper:
            helper.await_result()

    @contextmanager
    def _ask(self, action: str, *, writes: bool = False, **settings: Any) -> Iterator[Helper]:
        volume, image = self.volume, self.options.image or self.volume.image
        if not image:
            raise ToolError(
                f"the release {volume.release} is uninstalled, so no image is known to read its claim {volume.claim}",
                hint="name one that has Python 3.8 or newer, such as the runtime image: --image IMAGE",
            )
        pods = self.api.list_objects(kubernetes_api.PODS, volume.namespace)
        name = f"trainchart-checkpoints-{secrets.token_hex(3)}"
        plan = HelperPod(name, volume, image, choose_node(self.claim, pods), writes, self.options.seconds)
        self.tell(f"reading {volume.called} of the release {volume.release} by the pod {name} …")
        folder = "/".join(filter(None, (FOLDER, volume.folder)))
        with run_helper(
            self.api, volume.namespace, plan, {"action": action, "folder": folder, **settings}, self.tell
        ) as helper:
            yield helper

    def _refuse_used(self) -> list[str] | None:
        """Raise ToolError while a run may write to the claim; else return the pods that are there, as far as it counts.

        None for a claim that pods of other namespaces may use as well, by another claim for the same storage.
        """
        volume = self.volume
        try:
            key, seen = read_training(self.api, volume.namespace, self.name)
        except NotFound:
            pass
        else:
            if not diagnose(key, seen).is_over:
                raise ToolError(
                    f"{volume.release} is running",
                    hint=f"wait until it ends, or: trainchart stop {volume.release} -n {volume.namespace}",
                )
        pods = self.api.list_objects(kubernetes_api.PODS, volume.namespace)
        writers = find_writers(volume, pods)
        if writers:
            raise ToolError(
                f"{volume.called} is in use: {list_names(writers)} may write there",
                hint=advise_on_writers(writers, pods),
            )
        is_own = label(self.claim, INSTANCE_LABEL) == volume.release
        return [name_of(pod) for pod in pods if not has_ended(pod)] if is_own else None


def open_release(place: Place, name: str, options: HelperOptions, tell: Tell) -> ReleaseCheckpoints:
    """Find the claim of a release's checkpoints.

    Raises:
        NotFound: there is no such release, and no claim that it left.
        ToolError: it keeps no checkpoints, or keeps them elsewhere than in a claim.
        ClusterError: the cluster cannot be asked.
    """
    api, namespace = open_cluster(place)
    release, _, chart = name.partition("/")
    labels = f"{INSTANCE_LABEL}={release}"
    sets, jobs, claims = (
        api.list_objects(kind, namespace, labels=labels)
        for kind in (kubernetes_api.STATEFUL_SETS, kubernetes_api.JOBS, kubernetes_api.CLAIMS)
    )
    named, _, folder = options.claim.partition("/")
    if not (sets or claims or named):
        read_training(api, namespace, name)  # says what is there instead
    try:
        volume = find_volume(release, namespace, chart, sets, jobs, claims)
    except (NotFound, ToolError):
        if not named:
            raise
        volume = ReleaseVolume(release, namespace, named)
    if named:
        volume = replace(volume, claim=named, sub_path="", folder=folder)
    try:
        claim = api.read_object(kubernetes_api.CLAIMS, namespace, volume.claim)
    except NotFound as error:
        raise NotFound(
            f"the claim {volume.claim} of the release {release} is not there",
            hint=f"see: kubectl get pvc -n {namespace}",
        ) from error
    if not volume.template:
        volume = _borrow(api, volume, chart or label(claim, NAME_LABEL), tell)
    if not volume.image:
        noted = mapping_at(claim, "metadata", "annotations").get(IMAGE_ANNOTATION)
        volume = replace(volume, image=str(noted or ""))
    return ReleaseCheckpoints(api, name, volume, claim, options, tell)


def _borrow(api: KubernetesApi, volume: ReleaseVolume, chart: str, tell: Tell) -> ReleaseVolume:
    """Return the volume with the settings of another release of the same chart, if there is one in the namespace."""
    sets, jobs = (
        api.list_objects(kind, volume.namespace, labels=f"{NAME_LABEL}={chart}")
        for kind in (kubernetes_api.STATEFUL_SETS, kubernetes_api.JOBS)
    )
    lender, borrowed = borrow_settings(volume, sets, jobs)
    if lender:
        tell(f"note: the release {volume.release} is gone: its claim is read with image and settings of {lender}")
    return borrowed


def _parse(parse: Callable[[Mapping[str, Any]], _Result], document: Mapping[str, Any]) -> _Result:
    try:
        return parse(document)
    except ValueError as error:
        raise ClusterError(f"what the helper pod has printed cannot be read: {error}") from error


def _receive(helper: Helper, found: CheckpointList, step: int, staged: Path, tell: Tell) -> Checkpoint:
    """Copy the files of a checkpoint from a pod that serves them."""
    checkpoint = find_checkpoint(found, step)
    if checkpoint.problem or checkpoint.marker is None:
        raise refuse_damaged(step, found.folder, checkpoint.problem)
    sizes: dict[str, int | None] = dict(checkpoint.marker.files)
    sizes[catalogue.marker_name(step)] = None
    if found.origin is not None:
        sizes[ORIGIN_FILE] = None
    progress = _Progress(checkpoint.size, tell)
    for name, size in sizes.items():
        if name != ORIGIN_FILE and (not catalogue.belongs_to(name, step) or "/" in name):
            raise refuse_damaged(step, found.folder, f"its marker names {name!r}")
        with (staged / name).open("xb") as copy:
            _receive_file(helper, name, size, copy, progress)
            copy.flush()
            os.fsync(copy.fileno())
            if checkpoint.written_at > 0:
                os.utime(copy.fileno(), (checkpoint.written_at, checkpoint.written_at))
    return checkpoint


def _receive_file(helper: Helper, name: str, size: int | None, copy: BinaryIO, progress: _Progress) -> None:
    """Write the bytes of one file; after a lost connection, go on where it ended."""
    limit = _SMALL_LIMIT if size is None else size
    offset, tries = 0, 0
    while True:
        try:
            for data in helper.read_file(name, offset):
                copy.write(data)
                offset, tries = offset + len(data), 0
                progress.add(len(data))
                if offset > limit:
                    break
        except Unreachable as error:
            tries += 1
            if tries == _TRIES:
                raise
            progress.tell(f"the connection was lost at byte {offset:,} of {name}, trying again: {error.message}")
            time.sleep(2**tries)
            continue
        break
    if offset > limit or (size is not None and offset < size):
        raise ClusterError(
            f"{name} has {'more' if offset > limit else 'less'} than {limit:,} bytes in the claim",
            hint="it was changed in the meantime; try again",
        )


@dataclass
class _Progress:
    """Tells now and then how much was copied."""

    total: int
    tell: Tell
    done: int = 0
    told_at: float = 0.0

    def add(self, size: int) -> None:
        self.done += size
        now = time.monotonic()
        if now - self.told_at > _PROGRESS_SECONDS:
            if self.told_at:
                self.tell(f"copied {self.done:,} of {self.total:,} bytes")
            self.told_at = now
