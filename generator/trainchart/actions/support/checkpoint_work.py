"""Verifies and prunes a folder of checkpoints. Runs here, and in the helper pods of releases: standard library only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from trainchart.actions.support.checkpoint_content import find_content_damage
from trainchart.actions.support.checkpoint_folder import find_users, list_parts, read_list
from trainchart.checkpoints.listing import INCOMPLETE, Checkpoint, CheckpointList, find_surplus
from trainchart.checkpoints.results import Pruning, Verified
from trainchart.errors import Problem, ToolError
from trainchart.host.trees import remove_tree
from trainchart_training.saving import catalogue

_DAMAGES_SHOWN = 20


def find_checkpoint(found: CheckpointList, step: int) -> Checkpoint:
    """Return one checkpoint. Raises ToolError where there is none of that step."""
    checkpoint = found.find(step)
    if checkpoint is None:
        steps = ", ".join(str(each.step) for each in found.checkpoints[:20]) or "none"
        raise ToolError(f"there is no checkpoint of step {step} in {found.folder}", hint=f"steps there: {steps}")
    return checkpoint


def verify_folder(folder: Path, step: int | None, tell: Callable[[str], None]) -> Verified:
    """Read the bytes of all complete checkpoints, or of one step and those that a restart would try before another."""
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


def plan_folder_pruning(folder: Path, keep: int, tell: Callable[[str], None]) -> Pruning:
    """Return what goes when the `keep` newest checkpoints stay that are whole, read byte by byte.

    What is newer than the oldest of them stays as well.
    """
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


def prune_folder(pruning: Pruning) -> None:
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


def refuse_users(folder: Path, is_gone: Callable[[str], bool]) -> None:
    """Raise ToolError where pods have noted that they train in the folder, but for those that are known to be gone."""
    users = [(pod, path) for pod, path in find_users(folder) if not is_gone(pod)]
    if users:
        raise ToolError(
            f"{folder} is in use",
            hint="stop the training; remove the file of a pod that no longer exists",
            problems=tuple(
                Problem(f"pod {pod} may still train there", where=path) for pod, path in users[:_DAMAGES_SHOWN]
            ),
        )
