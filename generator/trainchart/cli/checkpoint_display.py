"""How `trainchart checkpoints` shows what it has found: lines of text, and documents of JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from trainchart.checkpoints.listing import Checkpoint, CheckpointList
from trainchart.checkpoints.results import Verified
from trainchart.reports.text import clean_lines, describe_bytes, describe_time, make_table
from trainchart_training.saving.catalogue import VariableShape, marker_name
from trainchart_training.saving.origin import Origin, RunStart, dump_run

_STEPS_SHOWN = 10
_METRICS_SHOWN = 6


def describe_steps(steps: Sequence[int]) -> str:
    """Return the steps of a sentence, such as "2 checkpoints (steps 0 and 20)"."""
    shown = ", ".join(map(str, steps[:_STEPS_SHOWN])) + (", …" if len(steps) > _STEPS_SHOWN else "")
    return f"1 checkpoint (step {shown})" if len(steps) == 1 else f"{len(steps)} checkpoints (steps {shown})"


def place_lines(place: Mapping[str, str]) -> list[str]:
    """Return the line about a release; none for a folder."""
    return clean_lines([f"release  {place['release']} in namespace {place['namespace']}"]) if place else []


def list_lines(found: CheckpointList) -> list[str]:
    """Return the table of a folder."""
    latest = found.latest
    rows = [
        (
            str(each.step),
            describe_time(each.written_at),
            describe_bytes(each.size),
            (each.marker.ending if each.marker else "") or "-",
            _list_metrics(each.metrics),
            f"{each.state}{', latest' if each.step == latest else ''}{f': {each.problem}' if each.problem else ''}",
        )
        for each in found.checkpoints
    ]
    lines = [f"folder  {found.folder}", f"origin  {_describe_origin(found.origin)}"]
    if found.origin and len(found.origin.runs) > 1:
        lines.append(f"runs    {len(found.origin.runs)}, the last one: {_describe_run(found.origin.runs[-1])}")
    if rows:
        lines += ["", *make_table(("STEP", "WRITTEN", "SIZE", "ENDING", "METRICS", "STATE"), rows)]
    else:
        lines.append("no checkpoints")
    if found.omitted:
        lines.append(f"and {found.omitted} older ones, which were not read")
    return clean_lines([*lines, *(f"note: {problem}" for problem in found.problems)])


def describe_list(found: CheckpointList) -> dict[str, Any]:
    """Return what list_lines shows as a JSON document."""
    return {
        "folder": found.folder,
        "origin": _origin_json(found.origin),
        "latest": found.latest,
        "checkpoints": [_summary(each) for each in found.checkpoints],
        "omitted": found.omitted,
        "problems": list(found.problems),
    }


def show_lines(checkpoint: Checkpoint) -> list[str]:
    """Return the page of one checkpoint."""
    marker = checkpoint.marker
    variables = marker.variables if marker else ()
    lines = [
        f"step     {checkpoint.step}",
        f"state    {checkpoint.state}{f': {checkpoint.problem}' if checkpoint.problem else ''}",
        f"written  {describe_time(checkpoint.written_at)}",
        f"ending   {(marker.ending if marker else '') or '-'}",
        f"metrics  {_list_metrics(checkpoint.metrics)}",
        f"numbers  {sum(map(_count, variables)):,} in {len(variables)} variables, those of the optimizer included",
    ]
    if variables:
        rows = [(str(each.name), str(each.dtype), str(list(each.shape))) for each in variables]
        lines += ["", *make_table(("VARIABLE", "TYPE", "SHAPE"), rows)]
    if checkpoint.files:
        rows = [(name, describe_bytes(size), f"{size:,}") for name, size in sorted(checkpoint.files.items())]
        lines += ["", *make_table(("FILE", "SIZE", "BYTES"), rows)]
    return clean_lines(lines)


def describe_whole(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what show_lines shows as a JSON document."""
    variables = checkpoint.marker.variables if checkpoint.marker else ()
    return {
        **_summary(checkpoint),
        "marker": marker_name(checkpoint.step) if checkpoint.marker else None,
        "files": dict(sorted(checkpoint.files.items())),
        "variables": [{"name": each.name, "type": each.dtype, "shape": list(each.shape)} for each in variables],
    }


def verified_lines(found: Verified) -> list[str]:
    """Return what a verification has found, a line for each checkpoint that was read."""
    return clean_lines([*_verified_steps(found.problems), f"a restart {_describe_restart(found)}"])


def _verified_steps(problems: Mapping[int, str]) -> Iterator[str]:
    for step, problem in problems.items():
        yield f"step {step}: {f'damaged: {problem}' if problem else 'every byte is as it was written'}"


def _describe_restart(found: Verified) -> str:
    if found.restart is not None:
        return f"restores step {found.restart}"
    return "fails: no checkpoint can be read" if found.has_markers else "starts over: there is no checkpoint"


def describe_verified(found: Verified) -> dict[str, Any]:
    """Return what verified_lines shows as a JSON document."""
    steps = [{"step": step, "isWhole": not problem, "problem": problem} for step, problem in found.problems.items()]
    return {"folder": found.folder, "checkpoints": steps, "restart": found.restart}


def _summary(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "step": checkpoint.step,
        "writtenAt": _iso(checkpoint.written_at),
        "bytes": checkpoint.size,
        "state": checkpoint.state,
        "problem": checkpoint.problem,
        "ending": checkpoint.marker.ending if checkpoint.marker else "",
        "metrics": dict(checkpoint.metrics),
    }


def _iso(at: float) -> str | None:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" if at > 0 else None
    except (OverflowError, OSError, ValueError):
        return None


def _describe_origin(origin: Origin | None) -> str:
    if origin is None:
        return "unknown"
    parts = [
        f"model {origin.model}" if origin.model else "",
        origin.strategy,
        f"release {origin.release}" + (f" in namespace {origin.namespace}" if origin.namespace else "")
        if origin.release
        else "",
        f"run {origin.run}" if origin.run else "",
        f"image {origin.image}" if origin.image else "",
        f"since {origin.created_at}" if origin.created_at else "",
    ]
    return ", ".join(filter(None, parts)) or "unknown"


def _describe_run(run: RunStart) -> str:
    parts = [
        f"release {run.release}",
        f"run {run.run}" if run.run else "",
        "" if run.step is None else f"from step {run.step}" + (f" of release {run.source}" if run.source else ""),
        f"since {run.started_at}" if run.started_at else "",
    ]
    return ", ".join(filter(None, parts))


def _origin_json(origin: Origin | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    return {
        "format": origin.format,
        "model": origin.model,
        "strategy": origin.strategy,
        "image": origin.image,
        "release": origin.release,
        "namespace": origin.namespace,
        "run": origin.run,
        "attempt": origin.attempt,
        "createdAt": origin.created_at,
        "runs": [dump_run(run) for run in origin.runs],
    }


def _list_metrics(metrics: Mapping[str, float | str]) -> str:
    shown = [f"{name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in metrics.items()]
    more = [f"and {len(shown) - _METRICS_SHOWN} more"] if len(shown) > _METRICS_SHOWN else []
    return "  ".join([*shown[:_METRICS_SHOWN], *more]) or "-"


def _count(variable: VariableShape) -> int:
    return math.prod(size or 0 for size in variable.shape)
