"""Whose checkpoints a folder holds: the file origin.json, what it says, and whom it refuses. Pure.

Written before the first checkpoint, and whenever a run begins. docs/checkpoints.md describes it, and its format changes
with FORMAT only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

ORIGIN_FILE = "origin.json"
FORMAT = 1
SIZE_LIMIT = 64 * 1024
"""Bytes; a file that is larger was not written by this library."""
_TEXTS = {
    "model": "model",
    "strategy": "strategy",
    "image": "image",
    "release": "release",
    "namespace": "namespace",
    "run": "run",
    "created_at": "createdAt",
}
"""Field → key of the file. What is not known is left out of it."""
_RUN_TEXTS = {
    "release": "release",
    "namespace": "namespace",
    "run": "run",
    "source": "source",
    "started_at": "startedAt",
}
_LONGEST = 1000
_MOST_RUNS = 50
"""Of more, the newest are kept."""


@dataclass(frozen=True)
class RunStart:
    """A run that has begun in a folder."""

    release: str = ""
    namespace: str = ""
    run: str = ""
    step: int | None = None
    """The step that it was to begin from; None: it was new, or took the newest checkpoint."""
    source: str = ""
    """The release that the checkpoint of that step was copied from."""
    started_at: str = ""
    """UTC, as in 2026-11-28T07:00:00Z."""


@dataclass(frozen=True)
class Origin:
    """Who began to write checkpoints into a folder, as far as the environment says it."""

    model: str = ""
    """Name of the model, which is its chart's."""
    strategy: str = ""
    image: str = ""
    release: str = ""
    namespace: str = ""
    run: str = ""
    """run.id of the release's values."""
    attempt: int = 0
    """Which start of the program in its pod this was."""
    created_at: str = ""
    """UTC, as in 2026-11-28T07:00:00Z."""
    format: int = FORMAT
    runs: tuple[RunStart, ...] = ()
    """Which runs have begun here, the newest last; empty where no values said how a run begins."""


UNKNOWN = Origin()
"""Of a process whose environment says nothing."""


def read_environment(environment: Mapping[str, str]) -> Origin:
    """Return the origin of what a process with this environment writes, but for the strategy."""
    attempt = environment.get("TRAINCHART_ATTEMPT", "")
    return Origin(
        model=environment.get("TRAINCHART_MODEL", ""),
        image=environment.get("TRAINCHART_IMAGE", ""),
        release=environment.get("TRAINCHART_RELEASE", ""),
        namespace=environment.get("TRAINCHART_NAMESPACE", ""),
        run=environment.get("TRAINCHART_RUN_ID", ""),
        attempt=int(attempt) if attempt.isascii() and attempt.isdigit() and len(attempt) < 10 else 0,
    )


def add_run(origin: Origin, run: RunStart) -> Origin:
    """Return the origin of a folder in which a further run has begun."""
    return replace(origin, runs=(*origin.runs, run)[-_MOST_RUNS:])


def dump_origin(origin: Origin) -> str:
    """Return the content of the file."""
    return json.dumps(build_object(origin), indent=1) + "\n"


def build_object(origin: Origin) -> dict[str, Any]:
    """Return the origin as a JSON object, without what is not known."""
    known: dict[str, Any] = {key: text for field, key in _TEXTS.items() if (text := getattr(origin, field))}
    attempt = {"attempt": origin.attempt} if origin.attempt else {}
    runs = {"runs": [dump_run(run) for run in origin.runs]} if origin.runs else {}
    return {"format": origin.format, **known, **attempt, **runs}


def dump_run(run: RunStart) -> dict[str, Any]:
    """Return the run as a JSON object, without what is not known."""
    texts = {key: text for field, key in _RUN_TEXTS.items() if (text := getattr(run, field))}
    return {**texts, **({} if run.step is None else {"step": run.step})}


def parse_origin(text: str) -> Origin:
    """Return what the file says; of a newer format, only what has kept its type. Raises ValueError for all else."""
    try:
        body = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    number = body.get("format") if isinstance(body, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError("it has no format number")
    kept, wrong = _read_texts(body, _TEXTS)
    attempt, runs = body.get("attempt", 0), body.get("runs", [])
    if not _is_number(attempt):
        wrong.append("attempt")
    if not isinstance(runs, list) or not all(map(_is_run, runs)):
        wrong.append("runs")
    if wrong and number <= FORMAT:
        raise ValueError(f"{wrong[0]} has a wrong type or length")
    return Origin(
        **kept,
        attempt=0 if "attempt" in wrong else attempt,
        format=number,
        runs=() if "runs" in wrong else tuple(map(_parse_run, runs)),
    )


def _read_texts(body: Mapping[str, Any], keys: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return field → text as far as it is one, without what harms a log, and the keys of those that are none."""
    texts = {field: body.get(key, "") for field, key in keys.items()}
    wrong = [keys[field] for field, value in texts.items() if not isinstance(value, str) or len(value) > _LONGEST]
    kept = {
        field: "".join(letter for letter in value if letter.isprintable())
        for field, value in texts.items()
        if keys[field] not in wrong
    }
    return kept, wrong


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_run(body: object) -> bool:
    return isinstance(body, dict) and not _read_texts(body, _RUN_TEXTS)[1] and _is_number(body.get("step", 0))


def _parse_run(body: Mapping[str, Any]) -> RunStart:
    return RunStart(**_read_texts(body, _RUN_TEXTS)[0], step=body.get("step"))


def find_refusal(mine: Origin, found: Origin, path: str) -> str:
    """Return why a process of origin `mine` must not use the folder that `found` has begun, or ""."""
    if found.format > FORMAT:
        return (
            f"{path} has format {found.format}, and this version of trainchart_training knows formats up to {FORMAT}:"
            " use a training image with a newer version, or another folder"
        )
    if mine.model and found.model and mine.model != found.model:
        return (
            f"the checkpoints belong to the model {found.model!r} ({path}), and this is the model {mine.model!r}:"
            f" use another folder, or empty this one; to let {mine.model!r} take it over, remove {path}"
        )
    return ""


def find_change(mine: Origin, found: Origin) -> str:
    """Return which other release of the same model has used the folder last, in words, or ""."""
    last = found.runs[-1] if found.runs else found
    if not (mine.release and last.release):
        return ""
    here, there = ((each.namespace, each.release) for each in (mine, last))
    if here == there or (mine.release == last.release and not (mine.namespace and last.namespace)):
        return ""
    return describe_release(last)


def describe_release(run: RunStart | Origin) -> str:
    """Return the release of a run, in words."""
    return f"release {run.release}" + (f" in namespace {run.namespace}" if run.namespace else "")
