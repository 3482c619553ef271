"""Puts the end of a local run into words: verdict, numbers, places of what is there, next commands. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.local.plan import LocalPlan
from trainchart.local.result import RunResult
from trainchart.local.verdict import Verdict
from trainchart.reports.runs_option import runs_option
from trainchart_runtime import contract

_LENGTHS = ("maxSteps", "trainSteps", "steps", "numSteps", "epochs", "maxEpochs", "numEpochs", "trainEpochs")


def summarize_result(
    plan: LocalPlan, result: RunResult, record: Mapping[str, Any], folder: str, install: Sequence[str]
) -> str:
    """Return the end of a run in words.

    `record` is run.json, `folder` the run's as the user names it, `install` the commands that put the same chart and
    values into a cluster.
    """
    name = shlex.quote(result.release) + runs_option(folder)
    lines = [f"{_headline(result)} after {_duration(result.seconds)}"]
    if result.nothing_done:
        lines.append(f"  {result.nothing_done}")
    if result.nothing_done and not (result.was_complete or result.is_unclear):
        lines.append(f"  Write files below ${contract.CHECKPOINTS_DIR}, and the step into ${contract.PROGRESS_FILE}.")
    lines += _numbers(result)
    lines += [f"  {title:<11}  {place}" for title, place in _places(plan, result)]
    steps = list(_next_steps(result, record, name, folder, install))
    return "\n".join([*lines, "next:", *(f"  {step}" for step in steps)])


def warn_of_loss(plan: LocalPlan, result: RunResult) -> tuple[str, ...]:
    """Return the warning on a training of which nothing is left: it made steps and wrote no file into a volume."""
    is_kept = result.outputs.holds_files or result.outputs.checkpoints or result.outputs.is_changed
    if result.verdict is Verdict.FAILED or result.step is None or is_kept:
        return ()
    where = f"save below ${contract.CHECKPOINTS_DIR}"
    hint = where if plan.checkpoints else f"add a volume checkpoints to the model spec, and {where}"
    return (f"nothing was kept: the program wrote no file into a volume; {hint}",)


def resume_command(record: Mapping[str, Any], folder: str) -> str:
    """Return the command that goes on with the run, with the same values."""
    words = ["trainchart", "run", str(record.get("target")), "--resume", "--release", str(record.get("release"))]
    return shlex.join(words) + runs_option(folder)


def _headline(result: RunResult) -> str:
    if result.nothing_done and result.was_complete:
        left = "train" if result.outputs.written else "do"
        return f"Nothing was left to {left}: {result.release} ended without an error"
    if result.nothing_done and result.is_unclear:
        return f"Nothing was added: {result.release} ended without an error"
    if result.nothing_done:
        return f"Nothing was kept: {result.release} ended without an error"
    return f"{result.verdict}: {result.release}"


def _numbers(result: RunResult) -> Iterator[str]:
    numbers = []
    if result.step is not None:
        numbers.append(f"{result.step} steps")
    if result.examples_per_second is not None and not result.nothing_done:
        numbers.append(f"{result.examples_per_second:,.0f} examples/s")
    if numbers:
        yield "  " + ", ".join(numbers)
    for label, metrics in result.metrics.items():
        yield f"  {label}: " + ", ".join(f"{name} {value:.6g}" for name, value in metrics.items())
    for pod in result.pods:
        if pod.nan_metrics:
            yield f"  {pod.label}: not a number: {', '.join(pod.nan_metrics)}"
    restarted = [f"{pod.label} {_times(pod.restarts)}" for pod in result.pods if pod.restarts]
    if restarted:
        yield "  restarted    " + ", ".join(restarted)


def _places(plan: LocalPlan, result: RunResult) -> Iterator[tuple[str, str]]:
    outputs = result.outputs
    if outputs.checkpoints:
        yield "checkpoints", outputs.checkpoints
    yield from (("SavedModel", folder) for folder in outputs.saved_models)
    yield from (("TensorBoard", folder) for folder in outputs.events)
    yield from ((f"claim {name}", folder) for name, folder in outputs.claims if folder != outputs.checkpoints)
    yield "role logs", f"{result.release_folder}/logs"


def _next_steps(
    result: RunResult, record: Mapping[str, Any], name: str, folder: str, install: Sequence[str]
) -> Iterator[str]:
    if result.verdict is Verdict.STOPPED:
        yield f"{resume_command(record, folder)}   # continues with the values that were given"
        return
    yield f"trainchart logs {name}"
    if not result.nothing_done:
        yield from [f"trainchart serve {name}"] if result.outputs.saved_models else []
        yield from [f"trainchart tensorboard {name}"] if result.outputs.events else []
        yield from install
    elif result.was_complete or result.is_unclear:
        again = resume_command(record, folder)
        longer = _longer_lengths(record, result.last_step or 0)
        yield from (f"{again} --set hyperparameters.{key}={size}" for key, size in longer)


def _longer_lengths(record: Mapping[str, Any], reached: int) -> Iterator[tuple[str, int]]:
    """Yield the hyperparameters that say how long to train, each with twice of what it says or of the steps reached."""
    for key, value in (record.get("hyperparameters") or {}).items():
        if key in _LENGTHS and isinstance(value, int):
            yield key, 2 * (max(value, reached) if "step" in key.lower() else value)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
