"""The use cases of `trainchart checkpoints`: list, verify, export and prune those of a folder, local run or release.

None needs TensorFlow. A folder may be anyone's: checkpoint_folder.py reads it, and what is removed are names in it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainchart.actions.support.checkpoint_export import check_copy, refuse_damaged
from trainchart.actions.support.checkpoint_folder import read_list
from trainchart.actions.support.checkpoint_pod import Tell
from trainchart.actions.support.checkpoint_release import HelperOptions, open_release
from trainchart.actions.support.checkpoint_work import (
    find_checkpoint,
    plan_folder_pruning,
    prune_folder,
    refuse_users,
    verify_folder,
)
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.checkpoints.listing import Checkpoint, CheckpointList
from trainchart.checkpoints.results import Pruning, Verified
from trainchart.cluster.io.kubeconfig import is_configured
from trainchart.errors import ToolError
from trainchart.host.files import build_tree
from trainchart.local.io.release_folder import RUN_FILE, holds_run, read_record
from trainchart.local.io.release_lock import is_running
from trainchart_runtime.io.files import open_regular
from trainchart_training.saving import catalogue
from trainchart_training.saving.origin import ORIGIN_FILE

_RUNS_OF_PROJECT = (".trainchart", "runs")
"""Where a project has its runs, unless --runs-dir names another folder."""
_CLAIMS = "claims"


class Checkpoints(Protocol):
    """What holds checkpoints: a folder, or a release's claim."""

    @property
    def place(self) -> Mapping[str, str]:
        """Where they are, for documents of JSON; empty for a folder, which has its name only."""

    def read_list(self) -> CheckpointList:
        """Return what is there; variables may be left out."""

    def read_checkpoint(self, step: int) -> Checkpoint:
        """Return one checkpoint with its variables. Raises ToolError where there is none of that step."""

    def verify(self, step: int | None) -> Verified:
        """Read the bytes of all complete checkpoints, or of one step and those that a restart would try before."""

    def export(self, step: int, destination: Path) -> Checkpoint:
        """Copy one checkpoint, whole, to a new folder that a training can start from; all or nothing.

        Raises:
            ChecksFailed: it is damaged.
            ToolError: there is no such step, or the destination is not a new or empty folder.
        """

    def plan_pruning(self, keep: int) -> Pruning:
        """Return what goes when the `keep` newest whole checkpoints stay. Raises while a run uses them."""

    def prune(self, pruning: Pruning) -> None:
        """Remove what was planned, the oldest first."""


@dataclass(frozen=True)
class _Folder:
    """The checkpoints of a folder."""

    path: Path
    run: Path | None
    """The folder of the local run whose checkpoints these are; None where a folder was named."""
    tell: Tell

    @property
    def place(self) -> Mapping[str, str]:
        return {}

    def read_list(self) -> CheckpointList:
        return read_list(self.path)

    def read_checkpoint(self, step: int) -> Checkpoint:
        return find_checkpoint(read_list(self.path), step)

    def verify(self, step: int | None) -> Verified:
        return verify_folder(self.path, step, self.tell)

    def export(self, step: int, destination: Path) -> Checkpoint:
        found = read_list(self.path)
        checkpoint = find_checkpoint(found, step)
        if checkpoint.problem or checkpoint.marker is None:
            raise refuse_damaged(step, str(self.path), checkpoint.problem)
        names = [*checkpoint.marker.files, catalogue.marker_name(step)]
        if found.origin is not None:
            names.append(ORIGIN_FILE)

        def fill(staged: Path) -> None:
            for name in names:
                _copy(self.path / name, staged / name)
            check_copy(staged, step, str(self.path))

        build_tree(destination, fill, is_ours=lambda _: False)
        return checkpoint

    def plan_pruning(self, keep: int) -> Pruning:
        _refuse_used(self.path, self.run, keep)
        return plan_folder_pruning(self.path, keep, self.tell)

    def prune(self, pruning: Pruning) -> None:
        prune_folder(pruning)


def open_checkpoints(address: RunAddress, options: HelperOptions, tell: Tell) -> Checkpoints:
    """Return the checkpoints of a local run, a folder, or a release on a cluster.

    A context or a namespace always means a release; without, a local run comes first, then a folder.

    Raises:
        ToolError: nothing has that name, or what has keeps no checkpoints that can be read.
        ClusterError: the cluster cannot be asked, or has no such release.
    """
    target, place, runs_folder = address.name, address.place, address.runs_folder
    _refuse_uri(target)
    if place.context or place.namespace:
        find_local_run(address)  # refuses an empty name
        return open_release(place, target, options, tell)
    is_path = "/" in target or target in (".", "..")
    if not is_path:
        run = runs_folder / target if target else find_local_run(address)
        if run is not None and holds_run(run):
            return _Folder(_find_checkpoints(run), run, tell)
    if is_path or os.path.isdir(target):  # noqa: PTH112  # takes any name
        return _Folder(Path(target), None, tell)
    if not is_configured(os.environ):
        find_local_run(address)
        raise ToolError(
            f"{target!r} is neither a folder nor a local run", hint="for a folder in the current one, write ./NAME"
        )
    find_local_run(address)
    tell(f"note: no local run {target} in {runs_folder}, and no folder; looking on the cluster")
    return open_release(place, target, options, tell)


def _refuse_uri(place: str) -> None:
    if re.match(r"[a-z][a-z0-9+.-]*://", place):
        raise ToolError(f"{place} is in an object store, which this command cannot read", hint="copy it to a folder")


def _find_checkpoints(run: Path) -> Path:
    noted = read_record(run / RUN_FILE).get("checkpoints")
    if isinstance(noted, str) and noted and "\0" not in noted:
        _refuse_uri(noted)
        if os.path.isdir(noted):  # noqa: PTH112  # takes any name
            return Path(noted)
    # Of a run that an earlier version has started, or that was moved here.
    found = [path for path in sorted(run.glob(f"{_CLAIMS}/*checkpoints")) if path.is_dir()]
    if len(found) == 1:
        return found[0]
    raise ToolError(
        f"the run {run.name} keeps no checkpoints", hint=f"give the folder; its claims are in {run / _CLAIMS}"
    )


def _copy(source: Path, copy: Path) -> None:
    with os.fdopen(open_regular(source), "rb") as old, copy.open("xb") as new:
        shutil.copyfileobj(old, new, 1024 * 1024)
        new.flush()
        os.fsync(new.fileno())
        facts = os.fstat(old.fileno())
        os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _refuse_used(folder: Path, run: Path | None, keep: int) -> None:
    """Raise ToolError while a training may write into the folder, or if it is a run's and outside its project or, where
    runs are elsewhere, outside the folder of runs."""
    own: set[str] = set()
    if run is not None:
        if is_running(run.parent, run.name):
            raise ToolError(
                f"{run.name} is running", hint=f"wait until it ends, or: trainchart stop {shlex.quote(run.name)}"
            )
        # The project may come from elsewhere: its record may name any folder, and its links may lead anywhere.
        runs = run.absolute().parent
        is_of_project = runs.parts[-2:] == _RUNS_OF_PROJECT
        limit = runs.parent.parent if is_of_project else runs
        if not folder.resolve().is_relative_to(limit.resolve()):
            what = "this project" if is_of_project else str(runs)
            raise ToolError(
                f"the record of {run.name} says that its checkpoints are in {folder}, outside {what}",
                hint="if that is correct, name the folder: "
                f"trainchart checkpoints prune {shlex.quote(str(folder))} --keep {keep}",
            )
        # It is over, so what its pods have left there says nothing.
        own = {str(pod["name"]) for pod in read_record(run / RUN_FILE).get("pods", ()) if "name" in pod}
    refuse_users(folder, own.__contains__)
