"""The end of an export: what was copied is verified, and refused where it is damaged."""

from __future__ import annotations

from pathlib import Path

from trainchart.actions.support.checkpoint_content import find_content_damage
from trainchart.actions.support.checkpoint_folder import read_list
from trainchart.actions.support.checkpoint_work import find_checkpoint
from trainchart.errors import ChecksFailed
from trainchart_training.saving import catalogue

_STATE_FILE = "checkpoint"
"""By which TensorFlow's own tools find the latest checkpoint of a folder."""


def check_copy(staged: Path, step: int, source: str) -> None:
    """Complete a copied checkpoint and read its bytes. Raises ChecksFailed where it is damaged."""
    prefix = catalogue.prefix(step)
    state = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'
    (staged / _STATE_FILE).write_text(state)
    # What was copied, not what it was copied from: either may be wrong.
    problem = find_content_damage(staged, find_checkpoint(read_list(staged), step))
    if problem:
        raise refuse_damaged(step, source, problem)


def refuse_damaged(step: int, source: str, problem: str) -> ChecksFailed:
    return ChecksFailed(
        f"the checkpoint of step {step} in {source} is damaged, and was not copied: {problem}",
        hint="choose another step; trainchart checkpoints verify shows which are complete",
    )
