"""What a local run ended with, as plain data, and the first failure in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.local.verdict import Verdict
from trainchart.reports.local_causes import LAUNCHER_ENDED
from trainchart_runtime.causes import CAUSES
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.termination import Termination, find_first_failure


@dataclass(frozen=True)
class Outputs:
    """What a run leaves at its end: all in its own folder, and what it wrote into folders that were there before it."""

    checkpoints: str = ""
    """Folder or URI; empty where nothing was written."""
    saved_models: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    """Folders for `tensorboard --logdir`: at most one a volume."""
    claims: tuple[tuple[str, str], ...] = ()
    """(name, folder) of the claims that hold files."""
    holds_files: bool = False
    """Whether there is any file in a folder that the run may write to, whenever it was written."""
    written: tuple[str, ...] = ()
    """What the run has written there: SavedModels, then other files, without events."""
    is_changed: bool = False
    """Whether the run has written anything that outlives its pods."""


NOTHING = Outputs()


@dataclass(frozen=True)
class PodResult:
    label: str
    name: str
    role: str
    state: str
    exit_code: int | None
    attempts: int
    container_restarts: int
    step: int | None
    examples_per_second: float | None
    metrics: Mapping[str, float]
    log_file: str
    nan_metrics: tuple[str, ...] = ()
    """Names of the metrics that are not a number."""

    @property
    def restarts(self) -> int:
        """How often the program was started again, be it by its launcher or with its launcher."""
        return max(self.attempts - 1, self.container_restarts, 0)


@dataclass(frozen=True)
class Failure:
    """The failure that the others followed from."""

    pod: str
    cause: str
    sentence: str
    error: str
    """The program's own words, maybe empty."""
    hint: str
    exit_code: int
    at: float
    """Seconds since the epoch."""
    log_file: str
    last_lines: tuple[str, ...]


@dataclass(frozen=True)
class RunResult:
    verdict: Verdict
    release: str
    release_folder: str
    seconds: float
    pods: tuple[PodResult, ...]
    deciding: tuple[str, ...]
    failure: Failure | None
    signal: int | None
    """The signal that stopped the run."""
    finished_at: float = 0.0
    """Unix seconds."""
    warnings: tuple[str, ...] = ()
    """What the user asked for and did not get."""
    outputs: Outputs = NOTHING
    before: Mapping[str, Any] | None = None
    """The result of the start before, for a run that was resumed."""

    @property
    def nothing_done(self) -> str:
        """Why a success is none, in a sentence; empty for a failure, and where anything was done."""
        if self.verdict is not Verdict.SUCCEEDED or self._has_worked():
            return ""
        if self.is_unclear:
            return "Its program reported no step and wrote no file. The files of earlier starts are still there."
        if not self.was_complete:
            return "Its program reported no step, and wrote no checkpoint or other file that outlives the run."
        step, written = self.last_step, self.outputs.written
        before = "the training had already finished" if step is None else f"the training was at step {step} already"
        done = f"No step was trained: {before}."
        return f"{done} This start wrote {list_names(written)}." if written else done

    @property
    def was_complete(self) -> bool:
        """The start before had finished the training, or this one found it finished, since it reports that step."""
        before = self.before or {}
        was_done = not before.get("nothingDone") or before.get("step") is not None
        # Of a start that was killed, `before` says nothing.
        found_done = self.step is not None and self.before is not None
        return (before.get("verdict") == Verdict.SUCCEEDED and was_done) or found_done

    @property
    def is_unclear(self) -> bool:
        """Nothing says whether the training had finished before this start: earlier starts left files, but no step."""
        return self.before is not None and self.outputs.holds_files and not self.was_complete

    @property
    def last_step(self) -> int | None:
        """The step that the run is at: a start that had nothing left to do leaves it where it was."""
        return self.step if self.step is not None else (self.before or {}).get("step")

    def _has_worked(self) -> bool:
        if self.step is None:
            return self.outputs.is_changed
        if self.before is None:
            return True
        if self.examples_per_second == 0:
            return False
        return self.outputs.is_changed or self.step != self.before.get("step")

    @property
    def step(self) -> int | None:
        """The last step of the pods that decide."""
        return max((pod.step for pod in self._leading() if pod.step is not None), default=None)

    @property
    def examples_per_second(self) -> float | None:
        """The speed of the first pod that decides and reports one: each of them reports that of the whole training."""
        return next((pod.examples_per_second for pod in self._leading() if pod.examples_per_second is not None), None)

    @property
    def metrics(self) -> Mapping[str, Mapping[str, float]]:
        """Final metrics by pod."""
        return {pod.label: pod.metrics for pod in self.pods if pod.metrics}

    def _leading(self) -> tuple[PodResult, ...]:
        return tuple(pod for pod in self.pods if pod.label in self.deciding)


@dataclass(frozen=True)
class PodEnd:
    """How one pod's launcher ended for good."""

    exit_code: int
    termination: Termination | None
    log_file: str
    last_line: str
    at: float


def explain_failure(ends: Mapping[str, PodEnd]) -> Failure | None:
    """Return the first failure among the pods that gave up; None for no pods.

    A launcher that left no message (it was killed) counts after those that did.
    """
    first = find_first_failure({label: end.termination for label, end in ends.items() if end.termination})
    if first is not None:
        end = ends[first]
        assert end.termination is not None
        cause = CAUSES.get(end.termination.cause)
        return Failure(
            pod=first,
            cause=end.termination.cause,
            sentence=cause.sentence if cause else "The program failed.",
            error=end.termination.error,
            hint=cause.hint if cause else "",
            exit_code=end.exit_code,
            at=end.termination.finished_at or end.at,
            log_file=end.log_file,
            last_lines=tuple(end.termination.lines),
        )
    silent = min(ends, key=lambda label: (ends[label].at, label), default=None)
    if silent is None:
        return None
    end = ends[silent]
    how = f"signal {-end.exit_code}" if end.exit_code < 0 else f"exit code {end.exit_code}"
    return Failure(
        pod=silent,
        cause=LAUNCHER_ENDED,
        sentence=f"The launcher ended with {how} and left no message.",
        error=end.last_line,
        hint="Read the pod's log.",
        exit_code=end.exit_code,
        at=end.at,
        log_file=end.log_file,
        last_lines=(),
    )
