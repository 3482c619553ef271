"""Reads the run controller's record out of its ConfigMap, and says what is wrong with one that cannot be read.

A record that people have damaged is told, never guessed over: diagnosis.py then says what the pods show instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.snapshot import Object, Objects, Unreadable, name_of, section
from trainchart.json_documents import parse_json
from trainchart_runtime.contract import LOGS_KEY, STATE_KEY
from trainchart_runtime.progress import parse_number
from trainchart_runtime.run.state import VERSION, RunState, StateError, parse_state

NOT_WRITTEN = "is empty: the run controller has not written it yet, or it was wiped"


@dataclass(frozen=True)
class KeptLog:
    """The last lines of one pod, kept when the run was decided."""

    pod: str
    at: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What the run controller has written, if anything."""

    state: RunState | None = None
    name: str = ""
    """The ConfigMap's; empty where there is none."""
    error: str = ""
    """Why there is no state although there should be one."""
    logs: tuple[KeptLog, ...] = ()
    logs_error: str = ""


def read_record(records: Objects) -> Record:
    """Return the record of a training, from the ConfigMaps that may be it."""
    if isinstance(records, Unreadable):
        return Record()
    if len(records) > 1:
        names = ", ".join(name_of(each) for each in records)
        return Record(error=f"there are several records where one is expected: {names}")
    return _parse(records[0]) if records else Record()


def _parse(config_map: Object) -> Record:
    name, data = name_of(config_map), section(config_map, "data")
    logs, logs_error = _parse_logs(data.get(LOGS_KEY))
    text = data.get(STATE_KEY)
    if not text:
        return Record(name=name, error=f"the record {name} {NOT_WRITTEN}", logs=logs, logs_error=logs_error)
    try:
        state = parse_state(str(text))
    except StateError as error:
        newer = _version(str(text)) > VERSION
        what = (
            f"was written by a newer version of trainchart ({error}); use that version's program"
            if newer
            else f"is damaged: {error}"
        )
        return Record(name=name, error=f"the record {name} {what}", logs=logs, logs_error=logs_error)
    return Record(state=state, name=name, logs=logs, logs_error=logs_error)


def _version(text: str) -> float:
    try:
        version = parse_json(text).get("version")
    except (ValueError, AttributeError):
        return 0
    return version if isinstance(version, (int, float)) else 0


def _parse_logs(text: Any) -> tuple[tuple[KeptLog, ...], str]:
    if not text:
        return (), ""
    try:
        document = parse_json(text)
    except (TypeError, ValueError) as error:
        return (), f"the kept logs are damaged: {error}"
    if not isinstance(document, Mapping):
        return (), "the kept logs are damaged: not a JSON object"
    return tuple(
        KeptLog(str(pod), parse_number(section(kept).get("at")) or 0.0, _lines(kept)) for pod, kept in document.items()
    ), ""


def _lines(kept: Any) -> tuple[str, ...]:
    lines = kept.get("lines") if isinstance(kept, Mapping) else None
    return tuple(str(line) for line in lines) if isinstance(lines, Sequence) and not isinstance(lines, str) else ()
