"""The recorded state of a run: what the run controller keeps in its ConfigMap, from the start to the day after.

Types, JSON and nothing else; run_rules.py decides what follows. The schema is for readers too (CLI, dashboards,
people with kubectl), so a field is never renamed: a change raises VERSION.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime.progress import parse_metrics, parse_number

VERSION = 1

STARTING = "Starting"
"""Every set has its replicas; not every pod has run yet."""
RUNNING = "Running"
FINISHING = "Finishing"
"""The leading task has succeeded; the evaluator, or the other workers, may finish their work."""
STOPPING = "Stopping"
"""The verdict is recorded; the pods are going."""
SUCCEEDED = "Succeeded"
FAILED = "Failed"
STATE_LOST = "StateLost"
"""The sets say that a run was here, but its record is gone: nothing is started until a person decides."""

PHASES = (STARTING, RUNNING, FINISHING, STOPPING, SUCCEEDED, FAILED, STATE_LOST)
ENDED_PHASES = (SUCCEEDED, FAILED, STATE_LOST)

HISTORY_KEPT = 20
MESSAGE_LIMIT = 1000
"""Characters kept of one message: a scheduler's message about a thousand nodes must not fill the ConfigMap."""


class StateError(ValueError):
    """The recorded state is not one that this version can read."""


class Verdict(NamedTuple):
    """How the run ended, and for a failure the first one: where, why, and the program's own words."""

    result: str
    """SUCCEEDED or FAILED."""
    at: float
    cause: str = ""
    sentence: str = ""
    hint: str = ""
    pod: str = ""
    node: str = ""
    exit_code: Optional[int] = None
    error: str = ""
    step: Optional[int] = None
    metrics: Mapping[str, float] = {}
    lines: Sequence[str] = ()


class RoleState(NamedTuple):
    """The pods of one role in numbers."""

    wanted: int
    running: int = 0
    failures: int = 0
    """Ends of containers of the pods that exist now, successes left out."""


class HistoryEntry(NamedTuple):
    """One change of phase."""

    at: float
    phase: str
    message: str


class RunState(NamedTuple):
    """Everything that outlives a controller."""

    run_id: str
    phase: str
    since: float
    """Unix time of the entry into `phase`: deadlines count from here, whichever controller watches."""
    updated: float
    """Unix time of the last recording."""
    attempt: int = 1
    succeeded: Sequence[str] = ()
    """Tasks whose success was seen, such as "chief-0": their pods may be gone before the run is over."""
    pending_verdict: Optional[Verdict] = None
    """While FINISHING: the leading task's success, which becomes the verdict."""
    verdict: Optional[Verdict] = None
    roles: Mapping[str, RoleState] = {}
    history: Sequence[HistoryEntry] = ()


def enter_phase(state: RunState, phase: str, now: float, message: str) -> RunState:
    """Return `state` in `phase` from `now` on, with an entry in its history."""
    entry = HistoryEntry(now, phase, message[:MESSAGE_LIMIT])
    return state._replace(phase=phase, since=now, history=(*state.history, entry)[-HISTORY_KEPT:])


def dump_state(state: RunState) -> str:
    """Return the state as JSON; people read it with kubectl, so it is indented."""
    document = {
        "version": VERSION,
        "runId": state.run_id,
        "phase": state.phase,
        "attempt": state.attempt,
        "since": state.since,
        "updated": state.updated,
        "verdict": _dump_verdict(state.verdict),
        "pendingVerdict": _dump_verdict(state.pending_verdict),
        "succeeded": list(state.succeeded),
        "roles": {role: numbers._asdict() for role, numbers in state.roles.items()},
        "history": [entry._asdict() for entry in state.history],
    }
    # Text from a program may hold lone surrogates, which UTF-8 cannot carry: escaped, they come back as they were.
    return json.dumps(document, indent=1)


def parse_state(text: str) -> RunState:
    """Parse a recorded state; raises StateError naming the first thing that is wrong."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise StateError(f"it is not JSON: {err}") from err
    if not isinstance(document, dict):
        raise StateError("it is not a JSON object")
    version = document.get("version")
    if version != VERSION:
        raise StateError(f"its version is {version!r}, this controller reads {VERSION}")
    phase = document.get("phase")
    if phase not in PHASES:
        raise StateError(f"its phase is {phase!r}, expected one of: {', '.join(PHASES)}")
    state = RunState(
        run_id=_field(document, "runId", str),
        phase=phase,
        since=_time(document, "since"),
        updated=_time(document, "updated"),
        attempt=_field(document, "attempt", int),
        succeeded=tuple(str(task) for task in _field(document, "succeeded", list)),
        pending_verdict=_parse_verdict(document, "pendingVerdict"),
        verdict=_parse_verdict(document, "verdict"),
        roles={role: _parse_role(numbers) for role, numbers in _field(document, "roles", dict).items()},
        history=tuple(_parse_entry(entry) for entry in _field(document, "history", list)),
    )
    if (state.verdict is None) == (phase in (STOPPING, SUCCEEDED, FAILED)):
        raise StateError(f"its phase {phase!r} and its verdict do not fit together")
    if phase == FINISHING and state.pending_verdict is None:
        raise StateError(f"its phase is {phase!r}, but it has no pendingVerdict")
    return state


_VERDICT_KEYS = {
    "result": "result",
    "at": "at",
    "cause": "cause",
    "sentence": "sentence",
    "hint": "hint",
    "pod": "pod",
    "node": "node",
    "exit_code": "exitCode",
    "error": "error",
    "step": "step",
    "metrics": "metrics",
    "lines": "lines",
}


def _dump_verdict(verdict: Optional[Verdict]) -> Optional[Dict[str, Any]]:
    if verdict is None:
        return None
    return {_VERDICT_KEYS[field]: value for field, value in verdict._asdict().items()}


def _parse_verdict(document: Mapping[str, Any], key: str) -> Optional[Verdict]:
    found = document.get(key)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise StateError(f"its {key} is not a JSON object")
    if found.get("result") not in (SUCCEEDED, FAILED):
        raise StateError(f"the result in its {key} is {found.get('result')!r}")
    words = {name: _field(found, name, str) for name in ("cause", "sentence", "hint", "pod", "node", "error")}
    return Verdict(
        result=found["result"],
        at=_time(found, "at"),
        exit_code=_whole(found, "exitCode"),
        step=_whole(found, "step"),
        metrics=parse_metrics(found.get("metrics")),
        lines=tuple(str(line) for line in _field(found, "lines", list)),
        **words,
    )


def _parse_role(numbers: Any) -> RoleState:
    if not isinstance(numbers, dict):
        raise StateError("one of its roles is not a JSON object")
    return RoleState(*(_field(numbers, name, int) for name in RoleState._fields))


def _parse_entry(entry: Any) -> HistoryEntry:
    if not isinstance(entry, dict):
        raise StateError("an entry of its history is not a JSON object")
    return HistoryEntry(_time(entry, "at"), _field(entry, "phase", str), _field(entry, "message", str))


def _field(document: Mapping[str, Any], key: str, kind: type) -> Any:
    value = document.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StateError(f"its {key!r} is {value!r}, not {kind.__name__}")
    return value


def _time(document: Mapping[str, Any], key: str) -> float:
    number = parse_number(document.get(key))
    if number is None:
        raise StateError(f"its {key!r} is {document.get(key)!r}, not a time")
    return float(number)


def _whole(document: Mapping[str, Any], key: str) -> Optional[int]:
    number = parse_number(document.get(key))
    return None if number is None else int(number)
