"""The use cases of `trainchart checkpoints`: list, verify, export and prune those of a folder, or of a local run.

None needs TensorFlow. A folder may be anyone's: checkpoint_folder.py reads it, and what is removed are names in it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.checkpoint_content import find_content_damage
from trainchart.actions.support.checkpoint_folder import find_users, list_parts, read_list
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.checkpoints.listing import INCOMPLETE, Checkpoint, CheckpointList, find_surplus
from trainchart.errors import ChecksFailed, Problem, ToolError, UsageError
from trainchart.host.files import build_tree
from trainchart.host.trees import remove_tree
from trainchart.local.io.release_folder import RUN_FILE, holds_run, read_record
from trainchart.local.io.release_lock import is_running
from trainchart_runtime.io.files import open_regular
from trainchart_training.saving import catalogue
from trainchart_training.saving.origin import ORIGIN_FILE

_STATE_FILE = "checkpoint"
"""By which TensorFlow's own tools find the latest checkpoint of a folder."""
_CLAIMS = "claims"
_DAMAGES_SHOWN = 20

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Verified:
    """What a verification has found."""

    folder: str
    problems: dict[int, str]
    """Step → what is wrong with it, "" where nothing is; the newest first, and only those that were read."""
    restart: int | None
    """The step that a restart takes; None where none can be read."""
    has_markers: bool
    """Whether there is any checkpoint: without one, a restart starts over."""


@dataclass(frozen=True)
class Pruning:
    """What a pruning removes."""

    folder: str
    kept: Sequence[int]
    removed: Sequence[int]
    size: int
    """Bytes that become free."""


def find_folder(target: str, runs_folder: Path) -> tuple[Path, Path | None]:
    """Return the folder of checkpoints that is meant, and that of the local run where a run is meant.

    Raises:
        ToolError: neither a folder nor a local run has that name, or the run keeps no checkpoints in a folder.
    """
    _refuse_uri(target)
    is_path = "/" in target or target in (".", "..")
    if not is_path:
        run = runs_folder / target if target else find_local_run(RunAddress("", Place("", ""), runs_folder))
        if run is not None and holds_run(run):
            return _find_checkpoints(run), run
    if is_path or os.path.isdir(target):  # noqa: PTH112  # takes any name
        return Path(target), None
    find_local_run(RunAddress(target, Place("", ""), runs_folder))
    raise ToolError(
        f"{target!r} is neither a folder nor a local run",
        hint="for a release on a cluster, mount its claim of checkpoints, and name the folder",
    )


def _refuse_uri(place: str) -> None:
    if re.match(r"[a-z][a-z0-9+.-]*://", place):
        raise ToolError(f"{place} is in an object store, which this command cannot read", hint="copy it to a folder")


def _find_checkpoints(run: Path) -> Path:
    noted = read_record(run / RUN_FILE).get("checkpoints")
    if isinstance(noted, str) and noted and "\0" not in noted:
        _refuse_uri(noted)
        if Path(noted).is_dir():
            return Path(noted)
    # Of a run that an earlier version has started, or that was moved here.
    found = [path for path in sorted(run.glob(f"{_CLAIMS}/*checkpoints")) if path.is_dir()]
    if len(found) == 1:
        return found[0]
    raise ToolError(
        f"the run {run.name} keeps no checkpoints", hint=f"name the folder; its claims are in {run / _CLAIMS}"
    )


def list_checkpoints(target: str, runs_folder: Path) -> CheckpointList:
    """Return what a folder, or a local run, has of checkpoints."""
    return read_list(find_folder(target, runs_folder)[0])


def find_checkpoint(found: CheckpointList, step: int) -> Checkpoint:
    """Return one checkpoint. Raises ToolError where there is none of that step."""
    checkpoint = found.find(step)
    if checkpoint is None:
        steps = ", ".join(str(each.step) for each in found.checkpoints[:20]) or "none"
        raise ToolError(f"there is no checkpoint of step {step} in {found.folder}", hint=f"steps there: {steps}")
    return checkpoint


def verify_checkpoints(target: str, step: int | None, runs_folder: Path, tell: Tell) -> Verified:
    """Read the bytes of all complete checkpoints, or of one step and those that a restart would try before another."""
    folder, _ = find_folder(target, runs_folder)
    found = read_list(folder)
    if step is not None:
        find_checkpoint(found, step)
    problems: dict[int, str] = {}
    restart: int | None = None
    for each in found.checkpoints:
        is_asked = step is None or each.step == step
        if not is_asked and restart is not None:
            continue
        if each.marker is None and not is_asked:
            continue
        if not each.problem:
            tell(f"reading step {each.step} ({each.size:,} bytes)")
        problem = find_content_damage(folder, each)
        if problem and each.marker is not None and not os.path.lexists(folder / catalogue.marker_name(each.step)):
            continue  # the training has removed it meanwhile, as the oldest one
        if not problem and restart is None:
            restart = each.step
        if is_asked or problem:
            problems[each.step] = problem
    return Verified(str(folder), problems, restart, any(each.state != INCOMPLETE for each in found.checkpoints))


def export_checkpoint(target: str, step: int, destination: Path, runs_folder: Path) -> Checkpoint:
    """Copy one checkpoint, whole, to a new folder that a training can start from; all or nothing.

    Raises:
        ChecksFailed: it is damaged.
        ToolError: there is no such step, or the destination is not a new or empty folder.
    """
    folder, _ = find_folder(target, runs_folder)
    found = read_list(folder)
    checkpoint = find_checkpoint(found, step)
    if checkpoint.problem or checkpoint.marker is None:
        raise _refuse_damaged(step, folder, checkpoint.problem)
    names = [*checkpoint.marker.files, catalogue.marker_name(step)]
    if found.origin is not None:
        names.append(ORIGIN_FILE)

    def fill(staged: Path) -> None:
        for name in names:
            _copy(folder / name, staged / name)
        prefix = catalogue.prefix(step)
        state = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'
        (staged / _STATE_FILE).write_text(state)
        # What was copied, not what it was copied from: either may be wrong.
        copied = find_checkpoint(read_list(staged), step)
        problem = find_content_damage(staged, copied)
        if problem:
            raise _refuse_damaged(step, folder, problem)

    build_tree(destination, fill, is_ours=lambda _: False)
    return checkpoint


def _refuse_damaged(step: int, folder: Path, problem: str) -> ChecksFailed:
    return ChecksFailed(
        f"the checkpoint of step {step} in {folder} is damaged, and was not copied: {problem}",
        hint=f"choose another step: trainchart checkpoints verify {folder}",
    )


def _copy(source: Path, copy: Path) -> None:
    with os.fdopen(open_regular(source), "rb") as old, copy.open("xb") as new:
        shutil.copyfileobj(old, new, 1024 * 1024)
        new.flush()
        os.fsync(new.fileno())
        facts = os.fstat(old.fileno())
        os.utime(new.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def plan_pruning(target: str, keep: int, runs_folder: Path, tell: Tell) -> Pruning:
    """Return what goes when the `keep` newest checkpoints stay that are whole, read byte by byte.

    What is newer than the oldest of them stays as well. Raises ToolError while a run uses the folder.
    """
    if keep < 1:
        raise UsageError(f"--keep is {keep}, expected at least 1")
    folder, run = find_folder(target, runs_folder)
    _refuse_used(folder, run)
    kept: list[int] = []
    for each in read_list(folder).checkpoints:
        if len(kept) == keep:
            break
        if each.is_complete:
            tell(f"reading step {each.step} ({each.size:,} bytes)")
            if not find_content_damage(folder, each):
                kept.append(each.step)
    if len(kept) < keep:
        return Pruning(str(folder), kept, (), 0)
    parts = list_parts(folder)
    removed = find_surplus(kept[-1], parts)
    size = sum(_sizes(folder, (name for step in removed for name in parts[step])))
    return Pruning(str(folder), kept, removed, size)


def _sizes(folder: Path, names: Iterator[str]) -> Iterator[int]:
    for name in names:
        try:
            yield os.lstat(folder / name).st_size
        except OSError:
            continue


def prune_checkpoints(pruning: Pruning) -> None:
    """Remove what was planned, the oldest first, of each the marker first: no half of one looks whole."""
    folder = Path(pruning.folder)
    parts = list_parts(folder)
    for step in pruning.removed:
        marker = catalogue.marker_name(step)
        for name in sorted(parts.get(step, ()), key=lambda name: name != marker):
            try:
                remove_tree(folder / name)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise ToolError(f"cannot remove {folder / name}: {reason}", hint="check who may write there") from error


def _refuse_used(folder: Path, run: Path | None) -> None:
    """Raise ToolError while a training may write into the folder."""
    own: set[str] = set()
    if run is not None:
        if is_running(run.parent, run.name):
            raise ToolError(f"{run.name} is running", hint=f"wait until it ends, or: trainchart stop {run.name}")
        # It is over, so what its pods have left there says nothing.
        own = {str(pod["name"]) for pod in read_record(run / RUN_FILE).get("pods", ()) if "name" in pod}
    users = [(pod, path) for pod, path in find_users(folder) if pod not in own]
    if users:
        raise ToolError(
            f"{folder} is in use",
            hint="stop the training; remove the file of a pod that no longer exists",
            problems=tuple(
                Problem(f"pod {pod} may still train there", where=path) for pod, path in users[:_DAMAGES_SHOWN]
            ),
        )
