"""How a run begins in a folder of checkpoints: new, or from which of them, and what it must not touch. Pure.

docs/checkpoints.md describes it. A run that has begun goes on from its own newest checkpoint, whatever was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainchart_training.errors import SettingsError
from trainchart_training.saving.origin import Origin, RunStart, describe_release

NEVER = "never"
LATEST = "latest"


@dataclass(frozen=True)
class Wish:
    """What the values ask for: run.resume and run.resumeRelease."""

    resume: str | int
    """NEVER, LATEST, or a step."""
    folder: str = ""
    """Where the checkpoints of another release are, from which the run is to begin; "": in its own folder."""
    release: str = ""
    """That release's name."""


@dataclass(frozen=True)
class Beginning:
    """What a run does before anything else; nothing at all where `refusal` says why."""

    refusal: str = ""
    is_begun: bool = False
    """Whether this run has begun in the folder before."""
    aside_after: int | None = None
    """Step after which checkpoints are moved out of the way, -1 for all of them; None: they stay."""
    is_copied: bool = False
    """Whether a checkpoint is copied from the wish's folder."""
    oldest: int = 0
    """The step below which no checkpoint may be restored: with it the run has begun."""


def read_wish(environment: Mapping[str, str]) -> Wish | None:
    """Return what is asked for, None where the environment does not say; raises SettingsError for what is unknown."""
    text = environment.get("TRAINCHART_RESUME", "")
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) < 17:
        resume: str | int = int(text)
    elif text in (NEVER, LATEST):
        resume = text
    else:
        raise SettingsError(f"TRAINCHART_RESUME: expected never, latest or the number of a step, got {text!r:.80}")
    folder = environment.get("TRAINCHART_RESUME_DIR", "")
    if folder and resume == NEVER:
        raise SettingsError(
            "run.resume is never, and run.resumeRelease names a release: set run.resume=latest, or to a step"
        )
    return Wish(resume, folder, environment.get("TRAINCHART_RESUME_RELEASE", ""))


def decide_beginning(
    wish: Wish | None, mine: Origin, found: Origin | None, steps: Sequence[int], folder: str
) -> Beginning:
    """Return how the run `mine` begins in a folder with complete checkpoints of `steps`, begun by `found`."""
    last = found.runs[-1] if found and found.runs else None
    if wish is None or (last is not None and _names_run(last) == _names_run(mine)):
        return Beginning(is_begun=True, oldest=last.step or 0 if wish and last else 0)
    is_own = last is not None and _names_run(last)[:2] == _names_run(mine)[:2]
    whose = _describe_owner(found)
    if wish.folder:
        # Without a run, the file was written before a copy that was cut short.
        is_own = is_own or (last is None and found is not None and _names_run(found)[:2] == _names_run(mine)[:2])
        if steps and not is_own:
            return Beginning(
                f"run.resumeRelease is {wish.release}, and {folder} already holds checkpoints{whose}, up to step"
                f" {max(steps)}: give this release an empty folder"
            )
        return Beginning(aside_after=-1 if steps else None, is_copied=True)
    if isinstance(wish.resume, int):
        return _decide_step(wish.resume, steps, is_own, whose, folder)
    if wish.resume == LATEST or not steps:
        return Beginning()
    if not is_own:
        return Beginning(
            f"run.resume is never, and {folder} already holds checkpoints{whose}, up to step {max(steps)}:"
            " set run.resume=latest to continue from them, or give this release a folder of its own"
        )
    return Beginning(aside_after=-1)


def _decide_step(step: int, steps: Sequence[int], is_own: bool, whose: str, folder: str) -> Beginning:
    if step not in steps:
        there = f"those of steps {', '.join(map(str, sorted(steps)))}" if steps else "none"
        return Beginning(f"run.resume: {folder} has no complete checkpoint of step {step}, but {there}")
    newer = [each for each in steps if each > step]
    if newer and not is_own:
        return Beginning(
            f"run.resume is {step}, and {folder} holds newer checkpoints{whose}, up to step {max(newer)}, which are not"
            " this release's to move: export that step to another folder, or set run.resume=latest"
        )
    return Beginning(aside_after=step if newer else None, oldest=step)


def _names_run(run: RunStart | Origin) -> tuple[str, str, str]:
    return run.namespace, run.release, run.run


def _describe_owner(found: Origin | None) -> str:
    last = found.runs[-1] if found and found.runs else found
    return f" of {describe_release(last)}" if last and last.release else ""
