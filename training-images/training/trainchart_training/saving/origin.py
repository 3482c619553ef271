"""Whose checkpoints a folder holds: the file origin.json, what it says, and whom it refuses. Pure.

Written once, before the first checkpoint. docs/checkpoints.md describes it; its format changes with FORMAT only.
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
_LONGEST = 1000


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


def dump_origin(origin: Origin, created_at: str) -> str:
    """Return the content of the file for an origin that is written now."""
    origin = replace(origin, created_at=created_at)
    known: dict[str, Any] = {key: text for field, key in _TEXTS.items() if (text := getattr(origin, field))}
    attempt = {"attempt": origin.attempt} if origin.attempt else {}
    return json.dumps({"format": FORMAT, **known, **attempt}, indent=1) + "\n"


def parse_origin(text: str) -> Origin:
    """Return what the file says; of a newer format, only what has kept its type. Raises ValueError for all else."""
    try:
        body = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    number = body.get("format") if isinstance(body, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ValueError("it has no format number")
    texts = {field: body.get(key, "") for field, key in _TEXTS.items()}
    attempt = body.get("attempt", 0)
    wrong = [_TEXTS[field] for field, value in texts.items() if not isinstance(value, str) or len(value) > _LONGEST]
    if not isinstance(attempt, int) or isinstance(attempt, bool):
        wrong.append("attempt")
    if wrong and number <= FORMAT:
        raise ValueError(f"{wrong[0]} has a wrong type or length")
    # They end up in the log.
    kept = {
        field: "".join(letter for letter in value if letter.isprintable())
        for field, value in texts.items()
        if _TEXTS[field] not in wrong
    }
    return Origin(**kept, attempt=0 if "attempt" in wrong else attempt, format=number)


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
    """Return which other release of the same model has begun the folder, in words, or ""."""
    if not (mine.release and found.release):
        return ""
    here, there = ((each.namespace, each.release) for each in (mine, found))
    if here == there or (mine.release == found.release and not (mine.namespace and found.namespace)):
        return ""
    return f"release {found.release}" + (f" in namespace {found.namespace}" if found.namespace else "")
